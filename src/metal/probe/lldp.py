"""Parses one LLDP frame (IEEE 802.1AB-2016). Frames are not trusted: every length is checked."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

ETHERTYPE = 0x88CC
END, CHASSIS, PORT, _TTL, PORT_TEXT, SYSTEM_NAME, SYSTEM_TEXT, CAPABILITIES, MANAGEMENT = range(9)
ORGANISATION = 127
PORT_VLAN = b"\x00\x80\xc2\x01"
"""IEEE 802.1's own TLV: the untagged VLAN of the port."""
MAC_CHASSIS, ADDRESS_CHASSIS = 4, 5
MAC_PORT, ADDRESS_PORT = 3, 4
CAPABILITY = ("Other", "Repeater", "Bridge", "Wlan", "Router", "Tel", "Docsis", "Station", "CVLAN", "SVLAN", "TPMR")
MAX_TEXT = 255

Neighbor = dict[str, Any]


class BadFrame(ValueError):
    """The frame is not a valid LLDP frame with chassis and port."""


def parse(frame: bytes) -> Neighbor:
    """The neighbour that sent an Ethernet frame.

    Raises:
        BadFrame: it is cut short, or lacks the chassis or port that every sender must name.
    """
    payload = _payload(frame)
    found: Neighbor = {"chassisId": "", "portId": "", "portDescription": "", "systemName": ""}
    found.update({"systemDescription": "", "mgmtIp": "", "capabilities": [], "vlanId": ""})
    for kind, value in _tlvs(payload):
        _take(found, kind, value)
    if not found["chassisId"] or not found["portId"]:
        raise BadFrame("the frame names no chassis or no port")
    return found


def _payload(frame: bytes) -> bytes:
    kind = frame[12:14]
    if kind == b"\x81\x00":  # tagged
        kind, frame = frame[16:18], frame[4:]
    if kind != ETHERTYPE.to_bytes(2, "big"):
        raise BadFrame("the frame's type is not LLDP")
    return frame[14:]


def _tlvs(payload: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 2 <= len(payload):
        head = int.from_bytes(payload[offset : offset + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        if kind == END:
            return
        offset += 2
        if offset + length > len(payload):
            raise BadFrame("a value is longer than the frame")
        yield kind, payload[offset : offset + length]
        offset += length


def _take(found: Neighbor, kind: int, value: bytes) -> None:
    texts = {PORT_TEXT: "portDescription", SYSTEM_NAME: "systemName", SYSTEM_TEXT: "systemDescription"}
    if kind in texts:
        found[texts[kind]] = _text(value)
    elif kind == CHASSIS:
        found["chassisId"] = _identity(value, MAC_CHASSIS, ADDRESS_CHASSIS)
    elif kind == PORT:
        found["portId"] = _identity(value, MAC_PORT, ADDRESS_PORT)
    elif kind == CAPABILITIES and len(value) >= 4:
        enabled = int.from_bytes(value[2:4], "big")
        found["capabilities"] = [name for bit, name in enumerate(CAPABILITY) if enabled >> bit & 1]
    elif kind == MANAGEMENT:
        found["mgmtIp"] = found["mgmtIp"] or _address(value[1 : 1 + value[0]] if value else b"")
    elif kind == ORGANISATION and value.startswith(PORT_VLAN) and len(value) >= 6:
        found["vlanId"] = str(int.from_bytes(value[4:6], "big"))


def _identity(value: bytes, mac: int, address: int) -> str:
    subtype, told = value[:1], value[1:]
    if subtype == bytes([mac]) and len(told) == 6:
        return ":".join(f"{byte:02x}" for byte in told)
    if subtype == bytes([address]):
        return _address(told) or told.hex(":")
    return _text(told)


def _address(value: bytes) -> str:
    """An address behind its IANA family number: 1 is IPv4, 2 is IPv6."""
    if (value[:1], len(value)) in ((b"\x01", 5), (b"\x02", 17)):
        return str(ipaddress.ip_address(value[1:]))
    return ""


def _text(value: bytes) -> str:
    told = value.decode("utf-8", "replace").strip(" \t\r\n\0")
    return "".join(char if char.isprintable() else " " for char in told)[:MAX_TEXT]
