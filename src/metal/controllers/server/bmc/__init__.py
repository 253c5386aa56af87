"""The BMC of a Server: finding it and the system on it, its failures, its inventory, its LED and boot order.

Power is in `server.power` and network boots are in `server.netboot`. May import `scope`, `identity`, `reasons` and the
layers below. Start reading in `connect`, then `bmc_errors`.
"""
