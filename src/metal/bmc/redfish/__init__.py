"""The BMC protocols over Redfish: one module for each capability, combined in `client.RedfishBMC`.

`pool` keeps one client for each BMC. `convert` maps Redfish resources to the value types of `metal.bmc`;
`inventory` is the capability that reads most, a package. Imports `metal.bmc` and `metal.redfish`.
Start reading in `client`, then `capability`.
"""
