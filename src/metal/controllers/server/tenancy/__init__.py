"""The claim that holds a Server, and the data that tenants leave: claims, adoption, re-imaging, sanitization.

`tenancy` finds the claim that holds a Server; `sanitization_policy` decides whether an erasure is outstanding,
`sanitization` and `firmware` execute it; `recreated` and `adoption` handle Servers whose history this operator has not
seen; `reimage` is a further network boot that a claim requests. May import `netboot`, `power`, `bmc`, `scope` and the
layers below, no state. Start reading in `tenancy`, then `sanitization`.
"""
