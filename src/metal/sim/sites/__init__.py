"""Simulated machines connected to a control plane.

`fleet` creates the machines and their BMCs and reports the DHCP leases (`leases`). `object_history` records every
version of the API's objects in the fleet's history. May import everything else in `metal.sim` except the invariants.
Start reading in `fleet`.
"""
