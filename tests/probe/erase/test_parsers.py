"""Parsers of the words, logs and sense data of drives, for valid and invalid input."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from metal.probe.erase.identify import Identity
from metal.probe.erase.nvme import Controller, SanitizeLog
from metal.probe.erase.runner import ToolFailed
from metal.probe.erase.scsi import parse_sense

WORDS = some.lists(some.integers(0, 0xFFFF), min_size=256, max_size=256)


def printed(words: list[int], device: str = "/dev/sda") -> str:
    """As hdparm --Istdout does."""
    lines = [" ".join(f"{word:04x}" for word in words[at : at + 8]) for at in range(0, len(words), 8)]
    return f"\n{device}:\n" + "\n".join(lines) + "\n"


@given(WORDS)
def test_all_words_of_an_identity_are_read(words: list[int]) -> None:
    """A device name that looks like a word does not shift the words."""
    assert Identity.parse(printed(words, "/dev/feed")).words == tuple(words)


@given(some.text())
def test_what_is_no_identity_is_refused(text: str) -> None:
    """With a message, for any input."""
    with pytest.raises(ValueError, match="words of 256"):
        Identity.parse(text)


@pytest.mark.parametrize(
    ("word", "seconds"),
    [(0, None), (1, 120), (0x00FE, 254 * 120), (0x8000, None), (0x8001, 120), (0xFFFF, 32767 * 120)],
)
def test_an_erase_time_counts_two_minutes(word: int, seconds: float | None) -> None:
    """Bit 15 widens the number; 0 means no estimate."""
    words = [0] * 256
    words[89] = word

    assert Identity.parse(printed(words)).erase_seconds == seconds


@given(some.binary(max_size=300))
def test_no_sense_data_breaks_the_parser(data: bytes) -> None:
    """A percentage is valid, and a key has four bits."""
    key, _, percent = parse_sense(data)

    assert 0 <= key < 16
    assert 0 <= percent < 100


@pytest.mark.parametrize(
    "data",
    [
        bytes([0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x1B, 0, 0x80, 0x40, 0]),
        bytes([0x72, 2, 0x04, 0x1B, 0, 0, 0, 20, 0, 10, *[0] * 10, 2, 6, 0, 0, 0x80, 0x40, 0, 0]),
    ],
)
def test_both_formats_of_sense_data_tell_the_progress(data: bytes) -> None:
    """Fixed and with descriptors (SPC-5): not ready, sanitize in progress, a quarter done."""
    assert parse_sense(data) == (2, (0x04, 0x1B), 25.0)


@given(some.binary(max_size=5000))
def test_no_nvme_answer_breaks_the_parsers(data: bytes) -> None:
    """Short data is rejected with a message."""
    for parse in (Controller.parse, SanitizeLog.parse):
        with contextlib.suppress(ToolFailed):
            parse(data)


def test_estimates_that_a_drive_does_not_give_are_none() -> None:
    """FFFFFFFFh in the sanitize log."""
    log = SanitizeLog.parse(bytes([0, 0x80, 2, 0, 0, 0, 0, 0]) + b"\xff" * 4 + bytes([30, 0, 0, 0, 1, 0, 0, 0]))

    assert log == SanitizeLog(percent=50.0, status=2, overwrite=None, block_erase=30.0, crypto_erase=1.0)
