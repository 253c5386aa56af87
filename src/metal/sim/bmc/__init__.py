"""The simulated BMC: a Redfish service over one simulated machine.

`redfish_service` answers requests without sockets, `http` serves it over sockets, and `in_process` is a transport for
tests in virtual time. Resources are built from the machine's state on each request (`redfish_tree`). May import
`metal.sim.machine`, `metal.redfish` and `metal.bmc`.
Start reading in `redfish_service`.
"""
