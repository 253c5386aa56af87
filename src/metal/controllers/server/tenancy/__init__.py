"""The claim that holds a Server, and the data that tenants leave: claims, adoption, re-imaging, sanitization.

`tenancy` finds the claim that holds a Server, `ownership` the claims that may own its data, and `living_claims` stops
what would end their tenancy. `sanitization_policy` decides whether an erasure is outstanding, `sanitization` and
`firmware` execute it; `owed_drives` does so for drives of other servers, which `drive_search` finds. `adoption` gives a
Server whose past this operator may not know its first record and state, by `adoption_table`; `lost_status`, `recreated`
and `takeover` are its cases, and `unknown_data` decides about the drives. `reimage` is a further network boot that a
claim requests. May import `netboot`, `power`, `bmc`, `scope` and the layers below, no state. Start reading in
`tenancy`, then `adoption`, then `sanitization`.
"""
