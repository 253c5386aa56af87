"""The BMC protocols over Redfish, put together from one file per capability."""

from metal.bmc.boot import RedfishBoot
from metal.bmc.events import RedfishEvents
from metal.bmc.firmware import RedfishFirmware
from metal.bmc.indicator import RedfishIndicator
from metal.bmc.inventory import RedfishInventory
from metal.bmc.power import RedfishPower
from metal.bmc.systems import RedfishSystems


class RedfishBMC(
    RedfishPower, RedfishBoot, RedfishSystems, RedfishInventory, RedfishFirmware, RedfishIndicator, RedfishEvents
):
    """One BMC, as protocols.BMC. Takes a RedfishClient, which the pool owns and closes."""
