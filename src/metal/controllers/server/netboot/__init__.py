"""One network boot of a Server: its configuration, its window, its progress, and whether it counts.

`boot` makes the boot, `progress` decides how far it is and whether it counts, `readiness` waits for the boot server to
have image and Ignition, `probe_boot` and `ignition` are the operator's own boots, with metalprobe. May import `power`,
`bmc`, `scope` and the layers below. Start reading in `boot`.
"""
