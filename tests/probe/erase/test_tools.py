"""Running tools, and operations on the kernel's block devices."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from metal.probe.erase.device import Device, make_writable
from metal.probe.erase.runner import ToolFailed, ask, run
from tests.probe.erase.machine import MIB, is_zero, tenant_data


def test_what_a_tool_prints_comes_back_as_bytes() -> None:
    """Binary logs too."""
    assert ask(run, sys.executable, "-c", "import os; os.write(1, b'\\x00\\xff')") == b"\x00\xff"


def test_a_tool_that_fails_has_the_last_word() -> None:
    """The exit code and the last line of its output."""
    with pytest.raises(ToolFailed, match="exit code 3: no such namespace"):
        ask(run, sys.executable, "-c", "import sys; print('usage', file=sys.stderr); print('no such namespace', "
            "file=sys.stderr); sys.exit(3)")  # fmt: skip


def test_a_tool_that_is_not_there_is_named() -> None:
    """The image lacks it."""
    with pytest.raises(ToolFailed, match="/no/such/tool cannot be started: No such file"):
        run(["/no/such/tool"], 5)


def test_a_tool_that_does_not_end_is_ended() -> None:
    """At its deadline, with its child processes."""
    with pytest.raises(ToolFailed, match="did not end in 0 s"):
        run([sys.executable, "-c", "import time; time.sleep(600)"], 0.1)


def test_a_device_is_zeroed_where_it_was_told_and_nowhere_else(medium: Path) -> None:
    """Chunks have no gap and no overlap."""
    with Device(medium) as device:
        device.zero(MIB, 7 * MIB)
        assert device.size() == 9 * MIB

    content = medium.read_bytes()
    assert not any(content[MIB : 8 * MIB])
    assert content[:MIB] == tenant_data(0, MIB)
    assert content[8 * MIB :] == tenant_data(8 * MIB, MIB)


def test_reading_past_the_end_is_an_error(medium: Path) -> None:
    """A short read verifies nothing."""
    with Device(medium) as device, pytest.raises(OSError, match="short read"):
        device.read(9 * MIB, 512)


def test_a_plain_file_has_no_opal_no_partitions_and_no_discard(medium: Path) -> None:
    """Unsupported operations have no effect."""
    with Device(medium) as device:
        device.reread_partitions()
        assert not device.opal_locked()
        with pytest.raises(OSError, match="Inappropriate ioctl"):
            device.discard(0, MIB)


@pytest.mark.needs("losetup")
def test_a_block_device_is_for_one_alone(loop: Path) -> None:
    """An exclusive user prevents opening it, and vice versa."""
    with Device(loop), pytest.raises(OSError, match="busy") as busy:
        Device(loop)
    assert busy.value.errno == errno.EBUSY


@pytest.mark.needs("losetup")
def test_a_block_device_takes_every_operation(loop: Path, medium: Path) -> None:
    """Bypassing the page cache: what is read is on the medium."""
    with Device(loop) as device:
        assert device.size() == 9 * MIB
        assert device.read(8 * MIB, MIB) == tenant_data(8 * MIB, MIB)
        device.write(4096, b"\x55" * 4096)
        device.flush()
        assert medium.read_bytes()[4096:8192] == b"\x55" * 4096
        device.discard(0, 9 * MIB)
        device.flush()
        device.reread_partitions()
        assert not device.opal_locked()
    assert is_zero(medium)


@pytest.mark.needs("losetup")
def test_a_protection_that_only_the_kernel_keeps_is_taken_back(loop: Path) -> None:
    """As `blockdev --setro` sets it."""
    subprocess.run(["blockdev", "--setro", str(loop)], check=True)
    with pytest.raises(OSError, match=r"not permitted|Read-only|denied"), Device(loop) as device:
        device.zero(0, 4096)

    make_writable(loop)
    with Device(loop) as device:
        device.zero(0, 4096)
