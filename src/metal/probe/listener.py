"""Listens for LLDP on packet sockets (packet(7)): no daemon is needed, but root is."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable

from metal.probe import lldp

GROUPS = (b"\x01\x80\xc2\x00\x00\x0e", b"\x01\x80\xc2\x00\x00\x03", b"\x01\x80\xc2\x00\x00\x00")
"""Nearest bridge, nearest non-TPMR bridge and nearest customer bridge (IEEE 802.1AB, table 7-1)."""
SOL_PACKET, ADD_MEMBERSHIP, MULTICAST = 263, 1, 0
MAX_NEIGHBORS = 32
"""Neighbours kept for each interface; a hub or a malicious sender may send any number."""

Neighbors = dict[str, list[lldp.Neighbor]]


class Listener:
    """Frames that arrive after `__init__` are kept by the kernel until `neighbors` reads them."""

    def __init__(self, interfaces: list[str]) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self.problems: list[str] = []
        for name in interfaces:
            self._listen(name)

    def _listen(self, name: str) -> None:
        try:
            self._sockets[name] = _open(name)
        except OSError as refused:
            self.problems.append(f"LLDP on {name}: {refused}")

    def neighbors(self, seconds: float, now: Callable[[], float] = time.monotonic) -> Neighbors:
        """Waits until each interface has heard a neighbour, `seconds` at most."""
        found: Neighbors = {name: [] for name in self._sockets}
        deadline = now() + seconds
        with selectors.DefaultSelector() as selector:
            for name, opened in self._sockets.items():
                selector.register(opened, selectors.EVENT_READ, name)
            while found and not all(found.values()) and (left := deadline - now()) > 0:
                for key, _ in selector.select(left):
                    _read(self._sockets[key.data], found[key.data])
        return found

    def close(self) -> None:
        """Closes the sockets."""
        for opened in self._sockets.values():
            opened.close()


def _open(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(lldp.ETHERTYPE))
    try:
        opened.setblocking(False)
        opened.bind((interface, lldp.ETHERTYPE))
        index = socket.if_nametoindex(interface)
        for group in GROUPS:
            membership = struct.pack("=iHH8s", index, MULTICAST, len(group), group)
            opened.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, membership)
    except OSError:
        opened.close()
        raise
    return opened


def _read(opened: socket.socket, known: list[lldp.Neighbor]) -> None:
    try:
        neighbor = lldp.parse(opened.recv(65536))
    except (OSError, lldp.BadFrame):
        return  # the link is down, or the frame is not valid
    if neighbor not in known and len(known) < MAX_NEIGHBORS:
        known.append(neighbor)
