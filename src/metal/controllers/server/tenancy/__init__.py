"""Whose machine it is, and what a tenant left on it: claims, adoption, re-imaging, sanitization.

`tenancy` finds the claim that holds a Server; `sanitization_policy` decides whether an erasure is owed, `sanitization`
and `firmware` carry it out; `recreated` and `adoption` handle Servers whose history this operator has not seen;
`reimage` is a further network boot that a claim asks for. May import `netboot`, `power`, `bmc`, `scope` and the layers
below, no state. Start reading in `tenancy`, then `sanitization`.
"""
