"""Queries network drivers (ioctl SIOCETHTOOL, linux/ethtool.h). Drivers may support none of the queries."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
GET_DRIVER, GET_LINK_SETTINGS = 0x03, 0x4C
DRIVER = struct.Struct("=I32s32s32s32s32s12sIIIII")
LINK = struct.Struct("=IIBBBBBBBbBBBB7I")
WORDS_AT = 15
"""Offset of the signed number of 32-bit words in each mode mask (`link_mode_masks_nwords`)."""
PORTS = {7: "TP", 8: "AUI", 9: "MII", 10: "FIBRE", 11: "BNC", 16: "Backplane"}
"""Bits of the supported mask that name connectors, not speeds (ETHTOOL_LINK_MODE_*_BIT)."""
MODES = {
    0: "10baseT/Half", 1: "10baseT/Full", 2: "100baseT/Half", 3: "100baseT/Full", 4: "1000baseT/Half",
    5: "1000baseT/Full", 12: "10000baseT/Full", 15: "2500baseX/Full", 17: "1000baseKX/Full", 18: "10000baseKX4/Full",
    19: "10000baseKR/Full", 21: "20000baseMLD2/Full", 22: "20000baseKR2/Full", 23: "40000baseKR4/Full",
    24: "40000baseCR4/Full", 25: "40000baseSR4/Full", 26: "40000baseLR4/Full", 31: "25000baseCR/Full",
    32: "25000baseKR/Full", 33: "25000baseSR/Full", 34: "50000baseCR2/Full", 35: "50000baseKR2/Full",
    36: "100000baseKR4/Full", 37: "100000baseSR4/Full", 38: "100000baseCR4/Full", 39: "100000baseLR4_ER4/Full",
    40: "50000baseSR2/Full", 41: "1000baseX/Full", 42: "10000baseCR/Full", 43: "10000baseSR/Full",
    44: "10000baseLR/Full", 45: "10000baseLRM/Full", 46: "10000baseER/Full", 47: "2500baseT/Full", 48: "5000baseT/Full",
    52: "50000baseKR/Full", 53: "50000baseSR/Full", 54: "50000baseCR/Full", 57: "100000baseKR2/Full",
    58: "100000baseSR2/Full", 59: "100000baseCR2/Full", 62: "200000baseKR4/Full", 63: "200000baseSR4/Full",
    66: "200000baseCR4/Full", 69: "400000baseKR8/Full", 70: "400000baseSR8/Full", 73: "400000baseCR8/Full",
}  # fmt: skip


class Ethtool:
    """One socket for any number of queries; a query that a driver does not support returns an empty result."""

    def firmware(self, interface: str) -> str:
        """The version of the adapter's firmware."""
        return parse_firmware(self._ask(interface, DRIVER.pack(GET_DRIVER, *[b""] * 6, 0, 0, 0, 0, 0)))

    def modes(self, interface: str) -> tuple[list[str], list[str]]:
        """Supported link modes and connectors."""
        asked = self._ask(interface, LINK.pack(GET_LINK_SETTINGS, *[0] * 20))
        # The kernel answers the first question with the size of its masks, as a negative number.
        words = -struct.unpack_from("=b", asked, WORDS_AT)[0] if len(asked) > WORDS_AT else 0
        if not 0 < words <= 32:
            return [], []
        question = bytearray(LINK.pack(GET_LINK_SETTINGS, *[0] * 20) + bytes(3 * 4 * words))
        struct.pack_into("=b", question, WORDS_AT, words)
        return parse_modes(self._ask(interface, bytes(question)), words)

    def _ask(self, interface: str, question: bytes) -> bytes:
        buffer = array.array("B", question)
        address, _ = buffer.buffer_info()
        request = struct.pack("16sP16x", interface.encode()[:15], address)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                fcntl.ioctl(any_socket.fileno(), SIOCETHTOOL, request)
        except OSError:
            return b""
        return buffer.tobytes()


def parse_firmware(answer: bytes) -> str:
    """The firmware version in an answer to GET_DRIVER."""
    if len(answer) < DRIVER.size:
        return ""
    version = DRIVER.unpack_from(answer)[3].split(b"\0")[0].decode("ascii", "replace").strip()
    return "" if version == "N/A" else str(version)


def parse_modes(answer: bytes, words: int) -> tuple[list[str], list[str]]:
    """Link modes and connectors in the `supported` mask of an answer to GET_LINK_SETTINGS."""
    mask = int.from_bytes(b"".join(_words(answer, words)), "little")
    return [name for bit, name in MODES.items() if mask >> bit & 1], [n for bit, n in PORTS.items() if mask >> bit & 1]


def _words(answer: bytes, words: int) -> list[bytes]:
    found = answer[LINK.size : LINK.size + 4 * words]
    return [struct.pack("<I", *struct.unpack_from("=I", found, at)) for at in range(0, len(found) - 3, 4)]
