"""`metalctl why`: explains in sentences the state of a server or a claim, its wait, and what to do.

May import `machines`, `objects` and `support`. Start with `server.explain` and `claim.explain`. `advice` has the
tables; `remedies` finds the way out in a message of the API.
"""
