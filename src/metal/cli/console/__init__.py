"""`metalctl console`: the serial console of a server, over SSH to its BMC.

May import `machines` and `support`, and the SSH client of `metal.bmc`. Start with `command`. `target` finds the
console, `session` runs it, and `host_key` pins the host key.
"""
