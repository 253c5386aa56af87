"""The controllers: one package for each kind, level-triggered, over the caches and the work queue of `metal.kube`.

Each package has a `reconciler` (what one pass does), `watches` (which changes cause a pass), and where they are needed
a `scope` (what one pass knows, and the one status patch in its end) and `settings`. A controller imports `shared`, the
layers below (`metal.evidence`, `metal.bmc`, `metal.machine`, `metal.api`, `metal.kube`), and of the others only the
vocabulary of a Server: `server.reasons` and `server.traits`. Start reading in `server`, the largest, with
`server.reconciler`.
"""
