"""The BMC protocols over Redfish: one module for each capability, combined in `client.RedfishBMC`.

`pool` keeps one client for each BMC. `convert` maps Redfish resources to the value types of `metal.bmc`; `reader`
reads the collections of an inventory and records what cannot be read. Imports `metal.bmc` and `metal.redfish`.
Start reading in `client`, then `capability`.
"""
