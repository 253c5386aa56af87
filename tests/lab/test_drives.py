"""The search for markers finds one at every position, and a filled file is complete. Needs no machine."""

from pathlib import Path

from tests.lab import drives, fill
from tests.lab.drives import CHUNK, MIB, Backing, Drive

MARKER = b"m" * (fill.MARKER - 1) + b"!"


def backing(folder: Path, size: int) -> Backing:
    (made,) = drives.create(folder, [Drive("virtio", "S1", size)])
    return made


def test_a_marker_across_two_reads_is_found_once(tmp_path: Path) -> None:
    """Also a marker at the very end; half a marker is not found."""
    made = backing(tmp_path, 2 * CHUNK)
    assert made.count(MARKER) == 0
    with made.path.open("r+b") as raw:
        for place in (0, CHUNK - 5, 2 * CHUNK - len(MARKER)):
            raw.seek(place)
            raw.write(MARKER)
        raw.seek(CHUNK + 100)
        raw.write(MARKER[1:])

    assert made.count(MARKER) == 3
    assert made.written_bytes() == 4 * len(MARKER) - 1


def test_a_filled_drive_holds_the_marker_in_every_sector(tmp_path: Path) -> None:
    """Every sector is different, so that a deduplicating drive has to store each."""
    made = backing(tmp_path, 3 * MIB)

    fill.fill(str(made.path), MARKER)

    content = made.path.read_bytes()
    sectors = [content[at : at + fill.SECTOR] for at in range(0, len(content), fill.SECTOR)]
    assert all(sector.count(MARKER) == fill.PER_SECTOR for sector in sectors)
    assert len(set(sectors)) == len(sectors) == 3 * MIB // fill.SECTOR
    assert made.count(MARKER) == len(sectors) * fill.PER_SECTOR
