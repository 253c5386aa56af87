"""What a controller may ask of a BMC, and how Redfish answers."""

from metal.bmc.pool import RedfishPool, http_transport
from metal.bmc.redfish import RedfishBMC

__all__ = ["RedfishBMC", "RedfishPool", "http_transport"]
