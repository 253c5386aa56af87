"""Commands on servers and claims: claim, release, power, cordon, park, maintain, approve, retry, status.

May import `objects` and `support`, and the decisions of `metal.controllers` that a command repeats. Start with `claim`;
`targets` finds servers and claims, `operations` requests operations by annotation, `batch` handles several names.
"""
