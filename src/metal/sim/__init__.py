"""A simulated site: BMCs, machines, DHCP leases and images, with faults, in virtual or real time.

`metalctl sim` and `metalctl up --fleet N` run it, and most tests do. The same seed gives the same run. May import
everything below `metal.manager`; nothing but `metal.cli` and tests imports it.

Start with `sites.fleet` (N machines with their BMCs), then `machine.machine` (one machine) and `bmc.redfish_service`
(its BMC). `faults` and `options` list what can go wrong and how long things take. `invariants` checks a `history`.
"""
