"""The ServerMaintenance controller: assigns Servers to maintenances, one at a time, and reports the progress of each.

`queue_order` decides which maintenance is next (pure functions), `assignment` writes spec.serverMaintenanceRef,
`claim_labels` asks the claim's owner for approval, `boot_config` writes the ServerBootConfiguration, `watches` says
which changes cause a pass. The Server controller carries out what a maintenance asks for. May import
`controllers.shared`, the layers below, and of `controllers.server` only `traits` and `reasons`. Start reading
in `reconciler`.
"""
