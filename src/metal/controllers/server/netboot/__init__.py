"""One network boot of a Server: its configuration, its window, its progress, and its verification.

`boot` performs the boot, `progress` decides how far it has come and whether it counts, `readiness` waits until the boot
server has image and Ignition, `probe_boot` and `ignition` prepare the operator's own boots, with metalprobe. May import
`power`, `bmc`, `scope` and the layers below. Start reading in `boot`.
"""
