"""The ServerBootConfiguration controller: resolves the image, validates the Ignition, and writes the IPXEBootConfig.

`lookups` resolves images without blocking workers, `user_data` validates the Ignition, `ipxe_boot_config` compares
and builds the IPXEBootConfig, `findings` computes the status, `watches` says which changes cause a pass. May import
`machineapi.bootserver` and `boot`, which serve the result, and `controllers.shared`. Start reading in `reconciler`.
"""
