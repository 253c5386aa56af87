"""The claim that holds a Server, and the data that tenants leave on its drives.

In the order of a server's life:

1. The record of tenancy: `outdated_status` corrects one that a backup brought back, then `adoption` rebuilds
   (`lost_status`) or converts one, and gives a Server without a state its first one, by `adoption_table`. `recreated`
   and `takeover` are its cases (a deleted Server, another operator's); `unknown_data` erases or trusts what they had.
2. The claim: `tenancy` finds it; `reimage` is a further network boot that it requests.
3. Its end: `living_claims` prevents it while a claim may own the data, by the table of `ownership`.
4. The erasure: `sanitization_policy` decides how, `sanitization` and `firmware` execute it, `sanitization_result`
   judges the report.
5. The drives: `drive_search` finds data of other servers' claims on drives; `owed_drives` waits, or has it erased;
   `non_unique` is about serial numbers that several drives have.

May import `netboot`, `power`, `bmc`, `scope` and the layers below, no state. `adoption` may import the other modules,
none of them imports it. Start reading in `tenancy`, then `adoption`, then `sanitization`.
"""
