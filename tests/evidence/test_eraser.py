"""The eraser in the probe and the control plane use the same formats of task and report."""

import json
import shlex
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metal.api.sanitization import KnownDrive, Result
from metal.controllers.server.netboot import ignition
from metal.evidence import report
from metal.evidence.verdict import judge
from metal.probe.cli import main
from metal.probe.erase import board, task
from metal.probe.erase.drives import Drive

UUID = "11111111-2222-3333-4444-555555555555"
KNOWN = (KnownDrive(name="sda", serial_number="S1", wwn="naa.1", size=1 << 30, slot="Bay 1"),)


def files(text: str) -> dict[str, bytes]:
    found: list[dict[str, Any]] = json.loads(text)["storage"]["files"]
    return {file["path"]: b64decode(file["contents"]["source"].partition("base64,")[2]) for file in found}


def drive(serial: str = "S1") -> Drive:
    return Drive("sda", "/dev/sda", serial, "naa.1", "Fast", "SATA", 1 << 30, False, "")


def test_the_task_that_the_ignition_carries_is_read_by_the_eraser(tmp_path: Path) -> None:
    """Policy and drives are read, and a drive that the machine has gets the slot of the inventory."""
    written = tmp_path / "sanitization.json"
    written.write_bytes(files(ignition.sanitization(b"pyz", "http://r:1", UUID, "Purge", KNOWN))[ignition.TASK_PATH])
    told, here = task.read(written), drive()
    told.place([here])
    assert (told.policy, told.missing([here]), here.slot) == ("Purge", [], "Bay 1")
    assert [lost.serial for lost in told.missing([drive("S2")])] == ["S1"]


def test_what_may_be_a_volume_is_told_to_the_eraser(tmp_path: Path) -> None:
    """It is a drive that the BMC does not list, if the BMC lists others that the machine does not have."""
    written = tmp_path / "sanitization.json"
    hidden = KnownDrive(serial_number="P1", slot="Bay 2")
    volume = KnownDrive(name="sdb", serial_number="V1", wwn="naa.2")
    told = []
    for drives in ((*KNOWN, volume, hidden), (*KNOWN, volume), (KnownDrive(serial_number="v1"), volume)):
        ignited = ignition.sanitization(b"pyz", "http://r:1", UUID, "Clear", drives)
        written.write_bytes(files(ignited)[ignition.TASK_PATH])
        read, here = task.read(written), [drive(), Drive("sdb", "/dev/sdb", "V1", "naa.2", "", "SCSI", 1, True, "")]
        read.place(here)
        told.append([one.may_be_volume for one in here])
    assert told == [[False, True], [False, False], [False, False]]


def test_the_command_line_of_the_unit_is_one_that_the_probe_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option is accepted; only the file that it names does not exist."""
    unit = json.loads(ignition.sanitization(b"pyz", "http://r:1", UUID, "Clear", KNOWN))["systemd"]["units"][0]
    line = next(text for text in unit["contents"].splitlines() if text.startswith("ExecStart="))
    words = [word.replace("/etc/metalprobe/", f"{tmp_path}/") for word in shlex.split(line.partition("=")[2])[2:]]
    (tmp_path / "token").write_text("t")
    try:
        code = main(words)
    except SystemExit as exc:  # argparse refuses
        code = int(str(exc.code))
    assert (code, "unrecognized" in capsys.readouterr().err) == (65, False)


def test_what_the_eraser_reports_is_what_the_control_plane_judges() -> None:
    """Every field is read; nothing is owed for an erased drive, and a missing one is owed."""
    records = board.records([drive()], [])
    told = board.Board(records, wall=lambda: 1e9)
    told.update(records[0], method="Overwrite", reached="Clear", result=board.SUCCEEDED, samples_read=66, percent=100)
    read = report.read(msgspec.json.encode(told.wire(done=True)))
    (one,) = read.drives
    assert (one.serial_number, one.wwn, one.size, one.method, one.class_) == (
        "S1",
        "naa.1",
        1 << 30,
        "Overwrite",
        "Clear",
    )
    assert (one.result, one.samples_read, read.done) == (Result.SUCCEEDED, 66, True)
    assert judge("Clear", KNOWN, read.drives).owed == ()
    assert "S1" in judge("Clear", KNOWN, report.read(_lost()).drives).owed[0]


def _lost() -> bytes:
    records = board.records([], [drive()])
    return msgspec.json.encode(board.Board(records, wall=lambda: 1e9).wire(done=True))
