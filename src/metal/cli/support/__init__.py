"""What commands share: the connection to the API server, exit codes, output, waiting, completion, the data folder.

May import `metal.api`, `metal.kube`, `metal.config` and `metal.apiserver` (private files), but no command. Start with
`context`: it turns an async function into a command.
"""
