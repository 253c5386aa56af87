"""The ServerClaim controller: binds claims to Servers, and writes the boot configuration that each claim describes.

`matching` decides which Server a claim may have (pure functions), `candidate_order` in which order Servers are
considered, `boot_config` writes the ServerBootConfiguration. May import `controllers.shared`, the layers below, and
of `controllers.server` what a Server's status means: `traits` and `reasons`.
Start reading in `reconciler`.
"""
