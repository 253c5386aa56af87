"""The BMC protocols over Redfish, combined from one class for each capability."""

from metal.bmc.redfish.carriers.offers import RedfishCarriers
from metal.bmc.redfish.events import RedfishEvents
from metal.bmc.redfish.firmware import RedfishFirmware
from metal.bmc.redfish.indicator import RedfishIndicator
from metal.bmc.redfish.inventory.inventory import RedfishInventory
from metal.bmc.redfish.power import RedfishPower
from metal.bmc.redfish.systems import RedfishSystems


class RedfishBMC(
    RedfishPower, RedfishCarriers, RedfishSystems, RedfishInventory, RedfishFirmware, RedfishIndicator, RedfishEvents
):
    """One BMC; implements metal.bmc.pool.BMC. Takes a RedfishClient, which the pool owns and closes."""
