"""Commands that run a process: `up`, `manager`, `sim`, `lease-hook` and `config`.

May import `support` and every package below metal.cli. Start with `up`: it assembles `standalone` from the embedded
API, `metal.manager` and, with --fleet, `simulated_fleet`. `manager` is the counterpart for a cluster.
"""
