"""LLDP: the content of a frame, and invalid frames."""

import ipaddress
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.probe import listener, lldp
from metal.probe.collectors import neighbors
from metal.probe.listener import MAX_NEIGHBORS, Listener


def tlv(kind: int, value: bytes) -> bytes:
    """A type, a length and a value."""
    return ((kind << 9) | len(value)).to_bytes(2, "big") + value


def frame(*tlvs: bytes, tagged: bool = False) -> bytes:
    """An Ethernet frame with an LLDP payload."""
    tag = b"\x81\x00\x00\x05" if tagged else b""
    return b"\x01\x80\xc2\x00\x00\x0e" + b"\xaa\xbb\xcc\x00\x00\x01" + tag + b"\x88\xcc" + b"".join(tlvs)


CHASSIS = tlv(1, b"\x04\xaa\xbb\xcc\xdd\xee\xff")
PORT = tlv(2, b"\x05Ethernet1/7")
TTL = tlv(3, b"\x00\x78")
FULL = frame(
    CHASSIS, PORT, TTL, tlv(4, b"to rack 7"), tlv(5, b"leaf-3"), tlv(6, b"SONiC\n4.1"), tlv(7, b"\x00\x14\x00\x14"),
    tlv(8, b"\x05\x01\x0a\x00\x00\x01\x02\x00\x00\x00\x01\x00"), tlv(127, b"\x00\x80\xc2\x01\x00\x2a"), tlv(0, b""),
)  # fmt: skip


@pytest.mark.behaviour(
    "Registry and probe",
    "LLDP neighbours are read with names, descriptions, management address, capabilities and VLAN.",
    go="Parses the output of lldpd.",
)
def test_a_switch_is_told_with_everything_it_says() -> None:
    """Capabilities are the enabled ones; control characters become spaces."""
    assert lldp.parse(FULL) == {
        "chassisId": "aa:bb:cc:dd:ee:ff",
        "portId": "Ethernet1/7",
        "portDescription": "to rack 7",
        "systemName": "leaf-3",
        "systemDescription": "SONiC 4.1",
        "mgmtIp": "10.0.0.1",
        "capabilities": ["Bridge", "Router"],
        "vlanId": "42",
    }


@pytest.mark.behaviour("Registry and probe", "LLDP frames with a VLAN tag are read.")
def test_a_tagged_frame_is_read_like_any_other() -> None:
    """Some switches send in the native VLAN with a tag."""
    assert lldp.parse(frame(CHASSIS, PORT, TTL, tagged=True))["portId"] == "Ethernet1/7"


@pytest.mark.behaviour("Registry and probe", "A chassis is named by network address or text.")
@pytest.mark.parametrize(
    ("chassis", "told"),
    [
        (b"\x05\x01\x0a\x00\x00\x02", "10.0.0.2"),
        (b"\x05\x02" + ipaddress.ip_address("fd00::2").packed, "fd00::2"),
        (b"\x07switch-a", "switch-a"),
        (b"\x04short", "short"),
    ],
)
def test_a_chassis_may_name_itself_in_several_ways(chassis: bytes, told: str) -> None:
    """MAC and network addresses are formatted as such, everything else is text."""
    assert lldp.parse(frame(tlv(1, chassis), PORT, TTL))["chassisId"] == told


@pytest.mark.behaviour("Registry and probe", "An LLDP frame without a chassis or port is refused with the reason.")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "type"),
        (b"\0" * 14, "type"),
        (frame(), "no chassis"),
        (frame(CHASSIS, TTL), "no port"),
        (frame(CHASSIS, PORT)[:-3], "longer than the frame"),
        (frame(tlv(1, b""), tlv(2, b"")), "no chassis"),
    ],
)
def test_a_frame_that_names_nobody_is_refused(bad: bytes, why: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(lldp.BadFrame, match=why):
        lldp.parse(bad)


@pytest.mark.behaviour("Registry and probe", "Any bytes after the EtherType give a bounded neighbour or a refusal.")
@given(st.binary(max_size=300))
def test_no_payload_breaks_the_reader(payload: bytes) -> None:
    """Any bytes after the type give a neighbour with bounded texts, or an error."""
    try:
        found = lldp.parse(frame(payload))
    except lldp.BadFrame:
        return
    assert all(len(value) <= 3 * lldp.MAX_TEXT for value in found.values())


@given(st.integers(min_value=0, max_value=len(FULL)))
def test_no_cut_breaks_the_reader(cut: int) -> None:
    """Truncated anywhere, the complete values are kept or the frame is rejected."""
    try:
        found = lldp.parse(FULL[:cut])
    except lldp.BadFrame:
        return
    assert found["chassisId"] == "aa:bb:cc:dd:ee:ff"


@pytest.fixture
def cable(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, socket.socket]]:
    """Interfaces a and b end in sockets of the test; every other one is refused."""
    ours: dict[str, socket.socket] = {}
    theirs: dict[str, socket.socket] = {}
    for name in ("a", "b"):
        ours[name], theirs[name] = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        theirs[name].setblocking(False)

    def opened(name: str) -> socket.socket:
        if name not in theirs:
            raise PermissionError(1, "Operation not permitted")
        return theirs[name]

    monkeypatch.setattr(listener, "_open", opened)
    yield ours
    for ends in (ours, theirs):
        for end in ends.values():
            end.close()


@pytest.mark.behaviour(
    "Registry and probe", "Listening ends when every interface has a neighbour; malformed frames are skipped."
)
def test_listening_ends_when_every_interface_heard_somebody(cable: dict[str, socket.socket]) -> None:
    """Earlier frames are kept; invalid ones between them are skipped; the time is not used up."""
    ears = Listener(["a", "b"])
    cable["a"].send(b"nonsense")
    cable["a"].send(FULL)
    cable["b"].send(frame(CHASSIS, tlv(2, b"\x05Ethernet1/8"), TTL))

    found = neighbors.collect(ears, seconds=30)

    assert [(entry["name"], [one["portId"] for one in entry["neighbors"]]) for entry in found] == [
        ("a", ["Ethernet1/7"]),
        ("b", ["Ethernet1/8"]),
    ]


@pytest.mark.behaviour(
    "Registry and probe", "Listening ends at a deadline; an interface without a neighbour is listed with none."
)
def test_silence_ends_at_the_deadline(cable: dict[str, socket.socket]) -> None:
    """An interface without a neighbour has an empty list."""
    assert neighbors.collect(Listener(["a"]), seconds=0.01) == [{"name": "a", "neighbors": []}]
    assert set(cable) == {"a", "b"}


@pytest.mark.behaviour("Registry and probe", "Repeated frames are one neighbour; the number of neighbours is limited.")
def test_a_repeated_frame_is_one_neighbour_and_a_liar_is_bounded(cable: dict[str, socket.socket]) -> None:
    """A switch repeats its frame every 30 s; thousands of invented neighbours are bounded."""
    known: list[lldp.Neighbor] = []
    ears = Listener(["a"])
    for number in range(MAX_NEIGHBORS + 5):
        for _ in range(2):
            cable["a"].send(frame(CHASSIS, tlv(2, b"\x05%d" % number), TTL))
            listener._read(ears._sockets["a"], known)

    assert len(known) == MAX_NEIGHBORS


def test_an_interface_that_may_not_be_listened_to_is_a_problem_of_its_own(cable: dict[str, socket.socket]) -> None:
    """The others are still read; when none is left the collector fails with the reason."""
    cable["a"].send(FULL)

    assert [entry["name"] for entry in neighbors.collect(Listener(["a", "c"]), seconds=1)] == ["a"]
    with pytest.raises(OSError, match=r"LLDP on c: .*not permitted"):
        neighbors.collect(Listener(["c"]), seconds=1)
