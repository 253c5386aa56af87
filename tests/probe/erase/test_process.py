"""`metalprobe sanitize` as a process: the archive, a task, drives, a registry."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metal.probe import bundle
from tests.probe.erase.machine import MIB, Faults, Machine, is_zero
from tests.probe.loopback import serve

pytestmark = pytest.mark.life


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "metalprobe.pyz"
    path.write_bytes(bundle.zipapp())
    return path


def command(archive: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-I", "-W", "error", str(archive), "sanitize", *map(str, arguments)]


def start(archive: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the archive without the checkout on its path."""
    return subprocess.run(command(archive, *arguments), capture_output=True, text=True, timeout=50, check=False)


def task(folder: Path, policy: str = "Clear", *serials: str) -> Path:
    path = folder / "sanitization.json"
    path.write_text(json.dumps({"policy": policy, "drives": [{"serialNumber": serial} for serial in serials]}))
    return path


def options(machine: Machine, url: str, task: Path) -> list[str]:
    """The options of the sanitization boot's unit."""
    (task.parent / "token").write_text("tok\n")
    return [
        f"--registry-url={url}", "--server-uuid=u-1", f"--token=@{task.parent / 'token'}", f"--task={task}",
        f"--root={machine.root}",
    ]  # fmt: skip


def test_a_task_erases_every_drive_and_tells_the_registry(archive: Path, machine: Machine, tmp_path: Path) -> None:
    """Listed or not; the last report is final, with the report token."""
    media = [machine.add("sda", 70 * MIB, device__serial="S1"), machine.add("sdb", 3 * MIB)]

    with serve(200, 503, 200) as peer:
        done = start(archive, *options(machine, peer.url, task(tmp_path, "Clear", "S1", "S9")))

    assert done.returncode == 0, done.stderr
    assert all(is_zero(medium) for medium in media)
    assert set(peer.paths) == {"/sanitization"}
    assert set(peer.tokens) == {"Bearer tok"}
    last = peer.bodies[-1]
    assert (last["systemUUID"], last["data"]["done"]) == ("u-1", True)
    assert [(each["name"], each["serialNumber"], each["result"], each["samplesRead"]) for each in results(last)] == [
        ("sda", "S1", "Succeeded", 130), ("sdb", "", "Succeeded", 3), ("", "S9", "Missing", 0),
    ]  # fmt: skip


def results(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The drives of a report."""
    return list(body["data"]["drives"])


def test_a_refused_token_erases_nothing(archive: Path, machine: Machine, tmp_path: Path) -> None:
    """EX_NOPERM, so that the unit does not restart it."""
    medium = machine.add("sda")

    with serve(403) as peer:
        done = start(archive, *options(machine, peer.url, task(tmp_path)))

    assert done.returncode == 77
    assert b"tenant" in medium.read_bytes()
    assert "tok" not in done.stderr.replace("token", "")


def test_a_run_that_was_killed_begins_again(archive: Path, machine: Machine, tmp_path: Path) -> None:
    """Only what this run has verified counts as erased."""
    medium = machine.add("sda", 400 * MIB)
    with serve(200) as peer:
        words = command(archive, *options(machine, peer.url, task(tmp_path)))
        first = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        with ended(first):
            while not peer.bodies or results(peer.bodies[-1])[0]["result"] != "Running":
                assert first.poll() is None
                time.sleep(0.005)  # a real process: nothing else tells that it has begun
            first.send_signal(signal.SIGKILL)
        assert not any(body["data"]["done"] for body in peer.bodies)
        again = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)

    assert again.returncode == 0, again.stderr
    assert is_zero(medium)
    assert results(peer.bodies[-1])[0]["result"] == "Succeeded"


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.needs("losetup")
def test_a_block_device_is_erased_by_hand(archive: Path, loop: Path, medium: Path) -> None:
    """Without a registry the result is printed; discard is tested on a real block device."""
    done = start(archive, "--only", loop.name, "--yes-erase")

    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["drives"]
    assert (told["result"], told["class"], told["size"]) == ("Succeeded", "Clear", 9 * MIB)
    assert told["method"] in ("Discard", "Overwrite")
    assert is_zero(medium)


def test_nothing_is_erased_without_yes(archive: Path, machine: Machine) -> None:
    """A task is a confirmation by the control plane; without one the option is required."""
    medium = machine.add("sda")

    done = start(archive, f"--root={machine.root}", "--only", "sda")

    assert done.returncode == 2
    assert "--yes-erase is missing" in done.stderr
    assert b"tenant" in medium.read_bytes()


def test_a_dry_run_prints_the_plan_and_erases_nothing(archive: Path, machine: Machine, tmp_path: Path) -> None:
    """The methods of each drive in order, and the missing drives."""
    medium = machine.add("sda", queue__discard_max_bytes="4096")
    machine.add("sdb", faults=Faults())

    done = start(archive, f"--root={machine.root}", "--dry-run", f"--task={task(tmp_path, 'Purge', 'S7')}")

    told = json.loads(done.stdout)
    assert (done.returncode, told["policy"], told["missing"]) == (0, "Purge", ["S7"])
    assert [[method["name"] for method in drive["methods"]] for drive in told["drives"]] == [
        ["Discard", "Overwrite"], ["Overwrite"],
    ]  # fmt: skip
    assert b"tenant" in medium.read_bytes()


def test_a_drive_that_fails_by_hand_has_an_exit_code_of_its_own(archive: Path, machine: Machine) -> None:
    """A regular file cannot be purged."""
    machine.add("sda")

    done = start(archive, f"--root={machine.root}", "--yes-erase", "--policy=Purge")

    assert done.returncode == 1
    assert json.loads(done.stdout)["drives"][0]["result"] == "Failed"


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--task=/no/such/task"], 65, "/no/such/task"),
        (["--only=sdz", "--yes-erase"], 2, "--only sdz"),
        (["--policy=Destroy"], 2, "--policy"),
        (["--yes-erase", "--registry-url=http://r"], 2, "--server-uuid"),
    ],
)
def test_wrong_options_are_named(archive: Path, machine: Machine, arguments: list[str], code: int, named: str) -> None:
    """One message, no traceback."""
    done = start(archive, f"--root={machine.root}", *arguments)

    assert done.returncode == code
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_help_tells_of_the_command(archive: Path) -> None:
    """The help of the default command refers to it."""
    done = start(archive, "--help")
    discovery = subprocess.run(
        [sys.executable, "-I", str(archive), "--help"], capture_output=True, text=True, check=True
    )

    assert "--dry-run" in done.stdout
    assert "metalprobe sanitize" in discovery.stdout
    assert os.linesep in done.stdout
