"""Commands on stored data: `backup`, `restore`, `move` and `evidence`.

May import `support`, `metal.apiserver`, `metal.move` and `metal.evidence`. Start with the module of a command;
`snapshot` is the client of an embedded API's backups.
"""
