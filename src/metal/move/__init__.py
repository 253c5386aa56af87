"""`metalctl move`: moves all objects between a standalone control plane and a cluster, in either direction.

`mover` runs the move, `homes` wraps one API, `inventory` and `documents` select and convert objects, and `lock` allows
one move at a time. `pause` is the part that every manager runs, so that no manager acts during a move. May import
`metal.kube`, `metal.api` and `metal.evidence`.
Start reading in `mover`.
"""
