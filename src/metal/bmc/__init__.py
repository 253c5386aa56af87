"""The capabilities of a BMC as protocols, and their Redfish implementation.

Controllers depend on the protocols only: they never see HTTP, paths or JSON. `metal.bmc.redfish` implements them with
`metal.redfish`, and `ssh` restarts a BMC that no longer answers Redfish. Imports `metal.redfish` and nothing else of
the project.

Start with `pool` (how a BMC is reached and what a pool hands out), then the capability of interest: `power`, `boot`,
`carriers` (a package: how a boot secret reaches the machine), `systems`, `inventory`, `firmware`, `indicator`,
`events`. Facts about vendors are rows of the table in `vendors`.
"""
