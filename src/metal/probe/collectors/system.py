"""System, board and firmware: SMBIOS types 0, 1 and 2, as parsed by the kernel."""

from __future__ import annotations

from metal.probe.collectors import Fields
from metal.probe.host import Host

FILES = {
    "biosInformation": {"vendor": "bios_vendor", "version": "bios_version", "date": "bios_date"},
    "systemInformation": {
        "manufacturer": "sys_vendor",
        "productName": "product_name",
        "version": "product_version",
        "serialNumber": "product_serial",
        "uuid": "product_uuid",
        "skuNumber": "product_sku",
        "family": "product_family",
    },
    "boardInformation": {
        "manufacturer": "board_vendor",
        "product": "board_name",
        "version": "board_version",
        "serialNumber": "board_serial",
        "assetTag": "board_asset_tag",
    },
}


def collect(host: Host) -> Fields:
    """Reads /sys/class/dmi/id.

    Raises:
        LookupError: the firmware has no SMBIOS.
    """
    if not host.exists("/sys/class/dmi/id"):
        raise LookupError("/sys/class/dmi/id is missing: the firmware shows no SMBIOS")
    return {
        part: {key: host.text("/sys/class/dmi/id/" + name) for key, name in names.items()}
        for part, names in FILES.items()
    }
