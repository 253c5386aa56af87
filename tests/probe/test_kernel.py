"""Queries to the kernel: addresses over netlink, drivers over ethtool."""

import ipaddress
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.probe import netlink
from metal.probe.ethtool import DRIVER, GET_LINK_SETTINGS, LINK, Ethtool, parse_firmware, parse_modes


def attribute(kind: int, value: bytes) -> bytes:
    """A netlink attribute with its padding."""
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(kind: int, body: bytes) -> bytes:
    """A netlink message with its padding."""
    packed = struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body
    return packed + b"\0" * (-len(packed) % 4)


def address(text: str, index: int, *, scope: int = 0, peer: str = "") -> bytes:
    """An RTM_NEWADDR message."""
    value = ipaddress.ip_address(text).packed
    attributes = attribute(3, b"eth0\0")
    attributes += attribute(1, ipaddress.ip_address(peer).packed) + attribute(2, value) if peer else attribute(1, value)
    return message(20, struct.pack("=BBBBI", 2, 24, 0, scope, index) + attributes)


def test_global_addresses_are_found_and_link_local_ones_left_out() -> None:
    """One datagram holds several messages; more may follow."""
    datagram = address("10.0.0.7", 2) + address("fd00::7", 3) + address("fe80::1", 2, scope=253)

    assert netlink.parse(datagram) == ([(2, "10.0.0.7"), (3, "fd00::7")], True)


def test_a_point_to_point_link_tells_its_own_end() -> None:
    """The address of the other end is present too and is not used."""
    assert netlink.parse(address("10.0.0.7", 2, peer="10.0.0.8"))[0] == [(2, "10.0.0.7")]


def test_the_end_of_the_dump_is_seen() -> None:
    """NLMSG_DONE ends it after any other messages."""
    assert netlink.parse(address("10.0.0.7", 2) + message(3, b"\0\0\0\0")) == ([(2, "10.0.0.7")], False)


def test_a_refusal_is_an_error_with_the_kernels_number() -> None:
    """EPERM arrives as -1."""
    with pytest.raises(OSError, match="refused") as raised:
        netlink.parse(message(2, struct.pack("=i", -1) + b"\0" * 16))

    assert raised.value.errno == 1


@given(st.binary(max_size=200))
def test_no_datagram_breaks_the_netlink_reader(noise: bytes) -> None:
    """Attributes of any content are read or skipped, never overrun."""
    for address_, _ in [netlink.parse(message(20, noise))]:
        assert isinstance(address_, list)


def test_this_machines_kernel_answers() -> None:
    """The real kernel returns only names of existing interfaces."""
    assert set(netlink.addresses()) <= {name for _, name in socket.if_nameindex()}


def test_the_firmware_version_is_cut_out_of_the_drivers_answer() -> None:
    """`N/A` and a short answer mean that there is none."""

    def answer(version: bytes) -> bytes:
        return DRIVER.pack(3, b"mlx5_core", b"6.1", version, b"0000:01:00.0", b"", b"", 0, 0, 0, 0, 0)

    assert parse_firmware(answer(b"22.36.1010 (DEL0000000015)")) == "22.36.1010 (DEL0000000015)"
    assert parse_firmware(answer(b"N/A")) == ""
    assert parse_firmware(b"short") == ""


class Driver(Ethtool):
    """A driver with masks of three words: it first returns the size, then the masks."""

    supported = (1 << 31) | (1 << 12) | (1 << 10) | (1 << 69)

    def _ask(self, interface: str, question: bytes) -> bytes:
        words = struct.unpack_from("=b", question, 15)[0]
        if words == 0:
            return LINK.pack(GET_LINK_SETTINGS, 25000, 1, 3, 0, 1, 0, 0, 0, -3, *[0] * 11)
        masks = self.supported.to_bytes(12, "little")
        return question[: LINK.size] + masks + bytes(24)


def test_link_modes_and_ports_come_from_the_supported_mask() -> None:
    """Bits beyond the second word count too; connectors are distinguished from speeds."""
    modes, ports = Driver().modes("eth0")

    assert modes == ["10000baseT/Full", "25000baseCR/Full", "400000baseKR8/Full"]
    assert ports == ["FIBRE"]


def test_a_driver_without_link_settings_has_no_modes() -> None:
    """The real kernel answers for loopback without failing."""
    assert Ethtool().modes("lo") == ([], [])
    assert Ethtool().firmware("no-such-interface") == ""


@given(st.binary(max_size=120), st.integers(min_value=1, max_value=32))
def test_no_answer_breaks_the_mode_reader(answer: bytes, words: int) -> None:
    """A driver's answer of any length gives lists."""
    modes, ports = parse_modes(answer, words)

    assert all(isinstance(name, str) for name in [*modes, *ports])
