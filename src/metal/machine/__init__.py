"""Machines as they are known in the API: their identity and tenancy, DHCP leases, probe reports and boot windows.

`identity` says which Servers are one machine and `drive_identity` which reports are one drive; `charge` and
`system_lease` which Server acts on a machine. `tenancy` has the transitions of the record of whose a machine is,
`kept_tenancy` its copy for a lost status. `boot_window` says what a machine may fetch during one network boot,
`boot_window_store` writes that to the Server. `directory` finds Servers and leases, `leases` records them, `report`
reads what the probe sends. Imports `api` and `kube` only. Start reading in `identity`, then `tenancy`, then
`boot_window`.
"""
