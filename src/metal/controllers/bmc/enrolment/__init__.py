"""Whether a BMC is enrolled, and the Servers of its systems.

`approval` waits until a BMC that was found may be used, `duplicates` decides which of two objects for one BMC is in
charge, `servers` creates a Server for each system, and `system_present` reports on it whether the BMC still lists it.

May import `bmc.scope`, `controllers.shared` and the layers below, no phase of a pass. Start reading in `servers`.
"""
