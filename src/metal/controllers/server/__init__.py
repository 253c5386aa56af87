"""The Server controller: moves one machine through its states, from inventory to the tenant's system and back.

`reconciler` makes one pass: the steps that need no BMC, finding the BMC, then one step of the present state. Layers,
from the top: `operations` (what an administrator requests), `states` (one module a state), `tenancy` (which claim has
the machine, and what is left of former ones), `netboot` (one network boot), `power`, `bmc` (reaching the BMC,
inventory, LED), `scope`, and the names that all of them use: `reasons` and `traits`. Each imports only those
below. Start reading in `reconciler`, then `traits`, then the states in the order of docs/states.md.
"""
