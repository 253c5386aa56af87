"""The one way in which this program listens for HTTP: limits on connections before a request is authenticated.

Embedded API, boot server, registry, event receiver and metrics all listen through `server.listen`. The package imports
nothing of ours, so that `metal.apiserver` can use it without knowing metal. Start reading in `server` (accepting), then
`connection` (the phases of a connection) and `table` (who is refused or closed when a limit is reached).
"""
