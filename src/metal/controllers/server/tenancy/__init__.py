"""The claim that holds a Server, and the data that tenants leave on its drives.

In the order of a server's life:

1. The record of tenancy: `adoption` decides it for a Server that is new, restored, recreated or another operator's,
   before the claim is looked at.
2. The claim: `tenancy` finds it; `reimage` is a further network boot that it requests.
3. Its end: `living_claims` prevents it while a claim may own the data, by the table of `ownership`.
4. The erasure: `sanitization_policy` decides how, `sanitization` and `firmware` execute it, `sanitization_result`
   judges the report.
5. The drives: `drive_search` finds data of other servers' claims on drives; `owed_drives` waits, or has it erased;
   `non_unique` is about serial numbers that several drives have, `record_key` about records that cannot be signed.

May import `netboot`, `power`, `bmc`, `scope` and the layers below, no state. The package `adoption` may import the
other modules, none of them imports it. Start reading in `tenancy`, then `adoption`, then `sanitization`.
"""
