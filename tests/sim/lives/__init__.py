"""Random lives of a few physical machines that many objects describe: BMCs, Servers and claims in any order.

`stage` has the control plane and the claims, `identities` and `restores` the rules, `administrator` what a person does
at the end; `test_lives` runs them. May import `tests.sim` and `tests.chain`. Start reading in `stage`.
"""
