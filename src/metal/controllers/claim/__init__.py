"""The ServerClaim controller: binds each claim to a Server, and requests the boot configuration that the claim
describes.

`matching` decides which Server a claim may have (pure functions), `candidate_order` in which order Servers are
considered, `boot_config` writes the ServerBootConfiguration. May import `controllers.shared` and the layers below.
Start reading in `reconciler`.
"""
