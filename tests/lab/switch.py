"""LLDP on every port of a bridge, as a real switch sends it."""

import contextlib
import json
import socket
import threading

from tests.lab.netns import Namespace

EVERY = 1.0
"""Seconds between two rounds. Switches send every 30 s, and every second right after a link came up."""
NAME = "lab-switch"
NEAREST_BRIDGE = bytes.fromhex("0180c200000e")


class Switch:
    """Sends LLDP on every port of a bridge until it is closed."""

    def __init__(self, where: Namespace, bridge: str) -> None:
        self._where, self._bridge = where, bridge
        (link,) = json.loads(where.ip("-j", "link", "show", bridge))
        self.mac: str = link["address"]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sending."""
        self._closed.set()
        self._thread.join()

    def _speak(self) -> None:
        while not self._closed.wait(EVERY):
            self._where.inside(self._send)

    def _send(self) -> None:
        ports = [port["ifname"] for port in json.loads(self._where.ip("-j", "link", "show", "master", self._bridge))]
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            for port in ports:
                with contextlib.suppress(OSError):  # a machine that was just powered off took its port along
                    raw.sendto(frame(self.mac, port), (port, 0))


def frame(mac: str, port: str) -> bytes:
    """An LLDP frame (IEEE 802.1AB) with chassis, port, time to live and a system name."""
    source = bytes.fromhex(mac.replace(":", ""))
    values = [(1, b"\x04" + source), (2, b"\x05" + port.encode()), (3, b"\x00\x78"), (5, NAME.encode()), (0, b"")]
    payload = b"".join((kind << 9 | len(value)).to_bytes(2, "big") + value for kind, value in values)
    return (NEAREST_BRIDGE + source + b"\x88\xcc" + payload).ljust(60, b"\0")
