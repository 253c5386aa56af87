"""What each kind of firmware is offered, by the architecture that it sends (DHCPv4 option 93, DHCPv6 option 61).

All of it is iPXE, which asks again with the user class iPXE and then gets the boot server's first script. Firmware that
boots by HTTP also sends the vendor class HTTPClient, and reads an answer only if it has that class, too.
"""

from dataclasses import dataclass

IPXE_CLASS = "iPXE"
HTTP_CLASS = "HTTPClient"
SCRIPT_PATH = "/ipxe"
"""Path of the boot server's first script."""
LOADER_PATH = "/httpboot"
"""Path of the boot server below which iPXE's EFI binaries are."""
LOADERS = {"x86_64.efi": "snponly.efi", "arm64.efi": "arm64-efi/snponly.efi"}
"""Names below LOADER_PATH, and the file of each in a folder of iPXE's binaries such as Debian's /usr/lib/ipxe."""


@dataclass(frozen=True)
class Firmware:
    """One kind of firmware, and the binary that it is offered: a path below the TFTP root or below LOADER_PATH."""

    name: str
    title: str
    architectures: tuple[int, ...]
    file: str
    http: bool = False
    ipv6: bool = True


FIRMWARE = (
    Firmware("bios", "BIOS PXE", (0,), "undionly.kpxe", ipv6=False),
    # 9 is the x64 of RFC 4578's text, which some firmware took literally; EBC, its other meaning, has no machines.
    Firmware("uefi-x86-64", "UEFI PXE, x86-64", (7, 9), "snponly.efi"),
    Firmware("uefi-arm64", "UEFI PXE, arm64", (11,), "arm64-efi/snponly.efi"),
    # 15 is x86, of 32 and (some firmware) of 64 bits.
    Firmware("http-x86-64", "UEFI HTTP, x86-64", (15, 16), "x86_64.efi", http=True),
    Firmware("http-arm64", "UEFI HTTP, arm64", (19,), "arm64.efi", http=True),
)
"""IANA's numbers of processor architectures."""
