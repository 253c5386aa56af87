"""The ServerClaim controller: binds claims to Servers, and writes the boot configuration that each claim describes.

`matching` decides which Server a claim may have (pure functions), `candidate_order` in which order Servers are
considered, `boot_config` writes the ServerBootConfiguration. May import `controllers.shared` and the layers below.
Start reading in `reconciler`.
"""
