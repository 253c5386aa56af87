"""One module for each state of a Server. What each permits is the table `traits` in the package above.

A module is named like its state and has `run`: one step, which returns when to come back, or enters another state with
`Scope.transition` or `Scope.fail`. It may import everything of the Server controller but `operations` and `reconciler`.
Start reading in `initial`, `discovery`, `available`, `reserved`, `cleanup`.
"""
