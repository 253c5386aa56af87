"""Machines as they are known in the API: UUIDs, DHCP leases, probe reports and boot windows.

`boot_window` says what a machine may fetch during one network boot, `boot_window_store` writes that to the Server,
`directory` finds Servers and leases, `leases` records them, `report` reads what the probe sends. Imports `api` and
`kube` only. Start reading in `boot_window`.
"""
