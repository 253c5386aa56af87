"""The event receiver: a Redfish event of a BMC triggers a reconcile of its Servers.

`receiver` authenticates a delivery by the BMC's token and records it in the BMC's status. `routes` maps the path.
May import `metal.machine`, `metal.api`, `metal.kube` and `metal.machineapi.http`. Start reading in `receiver`.
"""
