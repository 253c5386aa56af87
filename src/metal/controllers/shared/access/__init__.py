"""How controllers reach a BMC: where it may be, with which credentials, and by what it is known to be the same.

`bmc_endpoint` resolves the whole from API objects: the address is checked by `enrolment_policy`, the credentials by
`secret_use`, the certificate by `authorities`; `problem` says what prevents it. `pins` and `host_key` keep what a BMC
presented first, `sessions` logs out, `withheld` removes passwords from what the API refuses.

May import `shared.scope` and the layers below; no other module of `shared` imports this package. Start reading in
`bmc_endpoint`.
"""
