"""The carriers of a boot secret over Redfish; start in `offers`, which asks all of them what the BMC offers."""
