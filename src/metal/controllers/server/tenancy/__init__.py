"""The claim that holds a Server, and the data that tenants leave: claims, adoption, re-imaging, sanitization.

`tenancy` finds the claim that holds a Server, `ownership` the claims that may own its data, and `living_claims` stops
what would end their tenancy. `sanitization_policy` decides whether an erasure is outstanding, `sanitization` and
`firmware` execute it; `owed_drives` does so for drives of other servers, which `drive_search` finds. `recreated` and
`takeover` handle Servers whose history this operator has not seen, `unknown_data` what is on their drives; `reimage` is
a further network boot that a claim requests. May import `netboot`, `power`, `bmc`, `scope` and the layers below, no
state. Start reading in `tenancy`, then `sanitization`.
"""
