"""IP addresses from the kernel over rtnetlink (rtnetlink(7)), without external programs."""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator

RTM_NEWADDR, RTM_GETADDR = 20, 22
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
IFA_ADDRESS, IFA_LOCAL = 1, 2
SCOPE_GLOBAL = 0
HEADER = struct.Struct("=IHHII")
ADDRESS = struct.Struct("=BBBBI")
ATTRIBUTE = struct.Struct("=HH")
TIMEOUT = 5
"""Seconds the kernel may take."""


def addresses() -> dict[str, list[str]]:
    """Addresses of global scope by interface name; link-local addresses are omitted.

    Raises:
        OSError: the kernel refuses or does not answer.
    """
    found: dict[str, list[str]] = {}
    for index, address in _dump():
        found.setdefault(socket.if_indextoname(index), []).append(address)
    return found


def _dump() -> list[tuple[int, str]]:
    request = HEADER.pack(HEADER.size + ADDRESS.size, RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(TIMEOUT)
        kernel.sendto(request + ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0), (0, 0))
        found: list[tuple[int, str]] = []
        while True:
            part, more = parse(kernel.recv(65536))
            found += part
            if not more:
                return found


def parse(datagram: bytes) -> tuple[list[tuple[int, str]], bool]:
    """The (interface index, address) pairs of one answer, and whether more datagrams follow.

    Raises:
        OSError: the kernel reports an error.
    """
    found: list[tuple[int, str]] = []
    for kind, body in _messages(datagram):
        if kind == NLMSG_ERROR:
            raise OSError(-int.from_bytes(body[:4], sys.byteorder, signed=True), "rtnetlink refused to list addresses")
        if kind == NLMSG_DONE:
            return found, False
        if kind == RTM_NEWADDR and len(body) >= ADDRESS.size:
            found += _address(body)
    return found, True


def _messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + HEADER.size <= len(datagram):
        length, kind = HEADER.unpack_from(datagram, offset)[:2]
        if length < HEADER.size or offset + length > len(datagram):
            return
        yield kind, datagram[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def _address(body: bytes) -> list[tuple[int, str]]:
    _, _, _, scope, index = ADDRESS.unpack_from(body)
    if scope != SCOPE_GLOBAL:
        return []
    attributes = dict(_attributes(body[ADDRESS.size :]))
    # On point-to-point links ADDRESS is the other end's.
    packed = attributes.get(IFA_LOCAL) or attributes.get(IFA_ADDRESS) or b""
    return [(index, str(ipaddress.ip_address(packed)))] if len(packed) in (4, 16) else []


def _attributes(packed: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + ATTRIBUTE.size <= len(packed):
        length, kind = ATTRIBUTE.unpack_from(packed, offset)
        if length < ATTRIBUTE.size or offset + length > len(packed):
            return
        yield kind, packed[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
