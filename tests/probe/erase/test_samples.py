"""Sample positions, and what counts as erased."""

import errno
import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from metal.probe.erase.device import Device
from metal.probe.erase.samples import MIB, WHOLE, Promise, Samples, places
from tests.probe.erase.machine import tenant_data

SECTORS = some.integers(1, 40 * 1024**4 // 512)


@given(SECTORS, some.integers())
def test_samples_lie_on_the_drive_in_order_without_overlap(sectors: int, seed: int) -> None:
    """Their first and last bytes are on the drive, and no sample is truncated."""
    found = places(sectors * 512, random.Random(seed))

    assert found[0].offset == 0
    assert found[-1].offset + found[-1].length == sectors * 512
    assert all(place.length > 0 and place.offset % 512 == place.length % 512 == 0 for place in found)
    assert all(one.offset + one.length <= two.offset for one, two in itertools.pairwise(found))


@given(some.integers(WHOLE // 512 + 1, 40 * 1024**4 // 512), some.integers())
def test_a_large_drive_has_a_sample_in_each_of_its_parts(sectors: int, seed: int) -> None:
    """Both ends, and 128 parts between them: every hundredth of the drive has a sample."""
    size = sectors * 512
    found = places(size, random.Random(seed))

    assert len(found) == 130
    assert found[0].length == found[-1].length == MIB
    assert all(two.offset - one.offset <= max(2 * MIB, size // 50) for one, two in itertools.pairwise(found))


@given(some.integers(1, WHOLE // 512))
def test_a_small_drive_is_read_from_end_to_end(sectors: int) -> None:
    """Up to 64 MiB."""
    assert sum(place.length for place in places(sectors * 512, random.Random(0))) == sectors * 512


def test_places_come_from_the_given_chance() -> None:
    """The same seed gives the same positions, another seed others."""
    one, same, other = (places(10**12, random.Random(seed)) for seed in (1, 1, 2))

    assert one == same
    assert one != other


SIZE = 2 * MIB


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    path = tmp_path / "medium"
    path.write_bytes(tenant_data(0, SIZE))
    return path


def marked(medium: Path) -> Samples:
    """The samples of a drive that is about to be erased."""
    samples = Samples(places(SIZE, random.Random(3)), random.Random(3))
    with Device(medium) as device:
        samples.remember(device)
        samples.mark(device)
        assert samples.marked(device)
    return samples


def differing(samples: Samples, medium: Path, promise: Promise) -> int:
    """Samples that differ from the promise."""
    with Device(medium) as device:
        return samples.check(device, promise).differ


def put(medium: Path, offset: int, data: bytes) -> None:
    with open(medium, "r+b") as stream:
        stream.seek(offset)
        stream.write(data)


@pytest.mark.parametrize("promise", list(Promise))
def test_a_drive_that_did_nothing_is_caught_whatever_it_promised(medium: Path, promise: Promise) -> None:
    """The marker remains."""
    samples = marked(medium)

    assert differing(samples, medium, promise) == 2


@pytest.mark.parametrize("promise", list(Promise))
@settings(max_examples=20)
@given(sector=some.integers(0, SIZE // 512 - 1))
def test_one_sector_that_was_kept_is_enough(
    promise: Promise, sector: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of the marker, or of the content before the marker was written."""
    medium = tmp_path_factory.mktemp("kept") / "medium"
    medium.write_bytes(tenant_data(0, SIZE))
    samples = marked(medium)
    at = sector * 512
    kept = medium.read_bytes()[at : at + 512]

    for old in (kept, tenant_data(at, 512)):
        medium.write_bytes(bytes(SIZE))
        put(medium, at, old)
        assert differing(samples, medium, promise) == 1


@pytest.mark.parametrize(
    ("promise", "content", "differ"),
    [
        (Promise.ZEROES, b"\0", 0),
        (Promise.ZEROES, b"\xff", 2),
        (Promise.UNIFORM, b"\xde\xad\xbe\xef", 0),
        (Promise.UNIFORM, b"abcdefgh", 2),
        (Promise.CHANGED, b"abcdefgh", 0),
    ],
)
def test_each_promise_is_held_to(medium: Path, promise: Promise, content: bytes, differ: int) -> None:
    """Zeroes are zeroes, a pattern is repeated, and a lost key leaves anything else than before."""
    samples = marked(medium)
    medium.write_bytes(content * (SIZE // len(content)))

    assert differing(samples, medium, promise) == differ


def test_what_was_uniform_before_may_be_so_afterwards(medium: Path) -> None:
    """An empty drive that is erased again reads as before, and is verified."""
    medium.write_bytes(b"\xff" * SIZE)
    samples = marked(medium)
    medium.write_bytes(b"\xff" * SIZE)

    assert differing(samples, medium, Promise.CHANGED) == 0


def test_a_sample_that_cannot_be_read_differs(medium: Path) -> None:
    """The message has the position and the kernel's error."""
    samples = marked(medium)

    class Dead(Device):
        def read(self, offset: int, length: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with Dead(medium) as device:
        finding = samples.check(device, Promise.ZEROES)

    assert (finding.read, finding.differ) == (2, 2)
    assert finding.sentence == "byte 0 could not be read back: Input/output error"


def test_each_marking_is_a_new_one(medium: Path) -> None:
    """A second method is not verified by the result of the first one."""
    samples = marked(medium)
    first = medium.read_bytes()
    with Device(medium) as device:
        samples.mark(device)

    assert medium.read_bytes() != first


def test_nothing_of_a_former_content_is_shown(medium: Path) -> None:
    """Only digests are kept, and no repr has them."""
    samples = marked(medium)

    assert "tenant" not in repr(samples)
    assert "_before" not in repr(samples)
    assert "_key" not in repr(samples)
