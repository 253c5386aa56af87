"""The simulated machine: power, firmware, boot, and what metalprobe or a tenant's system does on it.

Start with `machine` (resets and power changes), then `boot` (from POST to a running system). `host` has the hardware
and the power state, `ipxe` interprets boot scripts, `ignition` reads configs, and `eraser` reports erasures. Requests
of a machine travel over a `network`. May import `metal.machineapi`, `metal.machine` and `metal.kube`.
"""
