"""Firmware's side of a network boot, as far as its packets: DHCPv4 and DHCPv6 exchanges, and TFTP's first block.

The options are those that SeaBIOS, OVMF and iPXE send. Run the functions inside a namespace.
"""

import ipaddress
import secrets
import socket
import struct
import uuid
from dataclasses import dataclass, field

DISCOVER, OFFER, REQUEST, ACK, RELEASE = 1, 2, 3, 5, 7
SOLICIT, ADVERTISE, REQUEST6, REPLY, RENEW6, RELEASE6 = 1, 2, 3, 7, 5, 8
MACHINE = uuid.UUID("4c4c4544-0042-3510-8052-b4c04f4a3732")
_COOKIE = b"\x63\x82\x53\x63"
_TIMEOUT = 8
_NOWHERE = str(ipaddress.IPv4Address(0))
_V6_PORT = 547
_MULTICAST = "ff02::1:2"


@dataclass(frozen=True)
class Kind:
    """What one kind of firmware says about itself."""

    name: str
    arch: int
    vendor: str = "PXEClient"
    user_class: str = ""

    @property
    def vendor_class(self) -> bytes:
        return f"{self.vendor}:Arch:{self.arch:05d}:UNDI:003000".encode()


@dataclass(frozen=True)
class Answer:
    """A server's message: the address that it gives, where it says the file is, and all options."""

    kind: int
    address: str
    server: str
    file: str
    options: dict[int, bytes] = field(default_factory=dict)

    @property
    def boot_file(self) -> str:
        """The file or URL, in option 67 or in the BOOTP header."""
        return self.options[67].rstrip(b"\0").decode() if 67 in self.options else self.file


class Client4:
    """A DHCPv4 client with this MAC address on one interface."""

    def __init__(self, mac: str, kind: Kind, nic: str = "eth0") -> None:
        self.mac, self.kind, self.nic = bytes.fromhex(mac.replace(":", "")), kind, nic
        self._transaction = secrets.token_bytes(4)

    def lease(self) -> tuple[Answer, Answer]:
        """DISCOVER and REQUEST: the offer and the acknowledgement."""
        offer = self._ask(DISCOVER, OFFER, {})
        return offer, self.request(offer)

    def request(self, offer: Answer) -> Answer:
        """REQUEST of an offered or leased address."""
        return self._ask(REQUEST, ACK, {50: _packed(offer.address), 54: offer.options[54]})

    def release(self, leased: Answer) -> None:
        """RELEASE, which has no answer."""
        self._send(self._packet(RELEASE, {54: leased.options[54]}, leased.address))

    def _ask(self, what: int, wanted: int, options: dict[int, bytes]) -> Answer:
        with _socket(self.nic, 68) as sock:
            sock.sendto(self._packet(what, options), ("255.255.255.255", 67))
            while True:
                answer = self._read(sock.recv(4096))
                if answer and answer.kind == wanted:
                    return answer

    def _send(self, packet: bytes) -> None:
        with _socket(self.nic, 68) as sock:
            sock.sendto(packet, ("255.255.255.255", 67))

    def _packet(self, what: int, options: dict[int, bytes], own: str = _NOWHERE) -> bytes:
        header = struct.pack(
            "!BBBB4sHH4s4s4s4s", 1, 1, 6, 0, self._transaction, 0, 0x8000, _packed(own), *[bytes(4)] * 3
        )
        said = {
            53: bytes([what]),
            55: bytes([1, 3, 6, 43, 54, 60, 66, 67]),
            57: struct.pack("!H", 1472),
            60: self.kind.vendor_class,
            93: struct.pack("!H", self.kind.arch),
            94: b"\x01\x03\x00",
            97: b"\0" + MACHINE.bytes_le,
            **({77: self.kind.user_class.encode()} if self.kind.user_class else {}),
            **options,
        }
        packed = b"".join(bytes([code, len(value)]) + value for code, value in said.items())
        return header + self.mac.ljust(16, b"\0") + bytes(192) + _COOKIE + packed + b"\xff"

    def _read(self, packet: bytes) -> Answer | None:
        if packet[4:8] != self._transaction or packet[0] != 2:
            return None
        options, rest = {}, packet[240:]
        while rest and rest[0] != 255:
            if rest[0] == 0:
                rest = rest[1:]
                continue
            options[rest[0]], rest = rest[2 : 2 + rest[1]], rest[2 + rest[1] :]
        address, server = (socket.inet_ntoa(packet[at : at + 4]) for at in (16, 20))
        return Answer(options[53][0], address, server, packet[108:236].rstrip(b"\0").decode(), options)


def _packed(address: str) -> bytes:
    return socket.inet_aton(address)


def _socket(nic: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, nic.encode())
    sock.bind(("", port))
    sock.settimeout(_TIMEOUT)
    return sock


class Client6:
    """A DHCPv6 client whose DUID is the machine's UUID, as UEFI has it; its MAC address is not in its packets."""

    def __init__(self, kind: Kind, nic: str = "eth0", iaid: int = 1) -> None:
        self.kind, self.nic, self.iaid = kind, nic, iaid
        self._transaction = secrets.token_bytes(3)

    def lease(self) -> Answer:
        """SOLICIT and REQUEST: the reply."""
        offer = self._ask(SOLICIT, ADVERTISE, {})
        return self.repeat(REQUEST6, offer)

    def repeat(self, what: int, leased: Answer) -> Answer:
        """REQUEST, RENEW or RELEASE of an address."""
        return self._ask(what, REPLY, {2: leased.options[2]}, leased.address)

    def _ask(self, what: int, wanted: int, options: dict[int, bytes], address: str = "") -> Answer:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.nic.encode())
            sock.bind(("::", 546))
            sock.settimeout(_TIMEOUT)
            index = socket.if_nametoindex(self.nic)
            sock.sendto(self._packet(what, options, address), (_MULTICAST, _V6_PORT, 0, index))
            while True:
                answer = self._read(sock.recv(4096))
                if answer and answer.kind == wanted:
                    return answer

    def _packet(self, what: int, options: dict[int, bytes], address: str) -> bytes:
        inner = struct.pack("!HH16sII", 5, 24, ipaddress.IPv6Address(address).packed, 0, 0) if address else b""
        vendor = self.kind.vendor_class
        said = {
            1: struct.pack("!H", 4) + MACHINE.bytes_le,
            3: struct.pack("!III", self.iaid, 0, 0) + inner,
            6: struct.pack("!4H", 59, 60, 23, 16),
            8: b"\0\0",
            16: struct.pack("!IH", 343, len(vendor)) + vendor,
            61: struct.pack("!H", self.kind.arch),
            62: b"\x01\x03\x00",
            **options,
        }
        if self.kind.user_class:
            said[15] = struct.pack("!H", len(self.kind.user_class)) + self.kind.user_class.encode()
        return bytes([what]) + self._transaction + b"".join(_option6(code, said[code]) for code in sorted(said))

    def _read(self, packet: bytes) -> Answer | None:
        if packet[1:4] != self._transaction:
            return None
        options = _options6(packet[4:])
        inner = _options6(options.get(3, b"")[12:]).get(5, b"")
        address = str(ipaddress.IPv6Address(inner[:16])) if inner else ""
        return Answer(packet[0], address, "", options.get(59, b"").decode(), options)


def _option6(code: int, value: bytes) -> bytes:
    return struct.pack("!HH", code, len(value)) + value


def _options6(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        code, length = struct.unpack("!HH", data[:4])
        found[code], data = data[4 : 4 + length], data[4 + length :]
    return found


def tftp_first_block(server: str, file: str) -> bytes:
    """The first 512 bytes of a file. Raises RuntimeError with the server's error."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(_TIMEOUT)
        sock.sendto(b"\0\1" + file.encode() + b"\0octet\0", (server, 69))
        answer = sock.recv(1024)
    if answer[:2] != b"\0\3":
        raise RuntimeError(f"TFTP {file}: {answer[4:].decode(errors='replace')}")
    return answer[4:]
