"""What several controllers share: the scope of a pass, the access to a BMC, metrics, YAML input files.

Imports `api`, `kube` and `bmc`, no other package of `controllers`. Start reading in `scope`, then
`access`.
"""
