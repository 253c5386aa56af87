"""The reports to the registry, and their times."""

import threading
from typing import Any

import pytest

from metal.probe.erase import command, drives, session
from metal.probe.erase.board import Board, Record
from metal.probe.erase.task import Task
from metal.probe.registry import Malformed, NotAccepted, NotAllowed, Refused
from tests.probe.erase.machine import Faults, Machine, is_zero

FIELDS = {
    "name", "serialNumber", "wwn", "model", "transport", "size", "rotational", "slot", "method", "class", "startedAt",
    "endedAt", "percent", "secondsLeft", "samplesRead", "samplesDiffer", "result", "message",
}  # fmt: skip


class Peer:
    """A registry with a list of answers."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.reports: list[dict[str, Any]] = []

    def __call__(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def results(self) -> list[list[str]]:
        """The drives' results in every report."""
        return [[drive["result"] for drive in report["drives"]] for report in self.reports]


def run(machine: Machine, peer: Peer, task: Task | None = None) -> int:
    """Run the command on the machine, with real threads and the machine's clock."""
    return command.erase(machine.kit, task or Task(), drives.find(machine.host), peer)


def test_the_registry_hears_the_beginning_and_the_end(machine: Machine) -> None:
    """Before the erasure all drives are pending; the last report is final, and the exit code 0."""
    machine.add("vda", device__serial="S1")
    machine.add("vdb", faults=Faults(dies_at=0))
    peer = Peer()

    assert run(machine, peer) == 0
    assert peer.results()[0] == ["Pending", "Pending"]
    assert peer.results()[-1] == ["Succeeded", "Failed"]
    assert [report["done"] for report in peer.reports] == [False] * (len(peer.reports) - 1) + [True]
    assert set(peer.reports[-1]) == {"done", "startedAt", "now", "problems", "drives"}
    assert set(peer.reports[-1]["drives"][0]) == FIELDS
    assert peer.reports[-1]["drives"][0]["serialNumber"] == "S1"


@pytest.mark.behaviour("Cleanup", "A registry that refuses the token of the run leaves the drives untouched.")
@pytest.mark.parametrize(("answer", "code"), [(Refused("spent"), 77), (Malformed("no"), 65)])
def test_a_registry_that_refuses_the_run_keeps_the_drives_whole(machine: Machine, answer: Exception, code: int) -> None:
    """A run without a valid token may not be authorized to erase this machine."""
    medium = machine.add("vda")

    assert run(machine, Peer(answer)) == code
    assert b"tenant" in medium.read_bytes()


def test_a_registry_that_goes_away_stops_no_erasure(machine: Machine) -> None:
    """Once the token was accepted, the erasure ends; the final report is repeated until it is accepted."""
    medium = machine.add("vda")
    peer = Peer(None, *[NotAccepted("down")] * 20)

    assert run(machine, peer) == 0
    assert is_zero(medium)
    assert peer.reports[-1]["done"]
    assert len(peer.reports) > 20
    assert peer.reports[-1] == peer.reports[-2]


@pytest.mark.behaviour("Cleanup", "Nothing is erased before the registry has confirmed the token of the run.")
def test_nothing_is_erased_while_no_registry_has_confirmed_the_token(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """After half an hour without an answer the run ends with EX_TEMPFAIL; the console says that nothing was erased."""
    medium = machine.add("vda")
    began = machine.time
    peer = Peer(*[NotAccepted("down")] * 1000)

    assert run(machine, peer) == 75
    assert b"tenant" in medium.read_bytes()
    assert 1700 < machine.time - began <= 1800
    assert not any(report["done"] for report in peer.reports)
    assert "nothing was erased" in caplog.text


def test_nothing_is_erased_before_it_is_allowed(machine: Machine) -> None:
    """The question lists the drives; it is repeated for hours, also through an outage, until it is answered."""
    medium = machine.add("vda", device__serial="S1")
    began = machine.time
    untouched = []

    class Slow(Peer):
        def __call__(self, report: dict[str, Any]) -> None:
            if self.answers:
                untouched.append(b"tenant" in medium.read_bytes())
            super().__call__(report)

    peer = Slow(NotAllowed("later"), *[NotAccepted("down")] * 200, *[NotAllowed("later")] * 200, None)

    assert run(machine, peer) == 0
    assert untouched == [True] * 402
    assert machine.time - began > 2 * session.CONFIRM_SECONDS
    assert is_zero(medium)
    questions = [report for report in peer.reports if report.get("awaitsPermission")]
    assert questions == peer.reports[:402]
    asked = questions[0]["drives"][0]
    assert (asked["name"], asked["serialNumber"], asked["size"] > 0, asked["result"]) == ("vda", "S1", True, "Pending")


def test_a_refusal_after_the_question_leaves_the_drives_untouched(machine: Machine) -> None:
    """The control plane ended the boot, because a drive has data of another claim: the token is void."""
    medium = machine.add("vda")

    assert run(machine, Peer(NotAllowed("later"), NotAllowed("later"), Refused("closed"))) == 77
    assert b"tenant" in medium.read_bytes()


def test_a_registry_that_comes_back_in_time_confirms_the_run(machine: Machine) -> None:
    """A short outage delays the erasure, and the drives are pending until the token was accepted."""
    medium = machine.add("vda")
    peer = Peer(*[NotAccepted("down")] * 30)

    assert run(machine, peer) == 0
    assert is_zero(medium)
    assert peer.results()[:31] == [["Pending"]] * 31


def test_a_drive_of_the_inventory_that_is_not_there_is_missing(machine: Machine) -> None:
    """A removed drive still has its data; an unlisted drive is erased as well."""
    machine.add("vda", device__serial="S1")
    listed = [
        named(serial="s1 ", slot="Bay 1"),
        named(serial="S2", slot="Bay 2"),
        named(wwn="naa.5"),
        named(name="vdz"),
    ]
    peer = Peer()

    assert run(machine, peer, Task(drives=tuple(listed))) == 0
    told = peer.reports[-1]["drives"]
    assert [(each["result"], each["slot"]) for each in told] == [
        ("Succeeded", "Bay 1"), ("Missing", "Bay 2"), ("Missing", ""), ("Missing", ""),
    ]  # fmt: skip
    assert told[1]["message"]


def named(name: str = "", serial: str = "", wwn: str = "", slot: str = "") -> drives.Drive:
    """A drive of the inventory."""
    return drives.Drive(name, f"/dev/{name}", serial, wwn, "", "", 0, False, slot)


def test_a_machine_without_drives_says_so(machine: Machine) -> None:
    """The control plane decides whether that is valid."""
    peer = Peer()

    assert run(machine, peer) == 0
    assert peer.reports[-1]["problems"] == ["no drive was found in this machine"]
    assert peer.reports[-1]["drives"] == []


def reporter(machine: Machine, peer: Peer) -> tuple[Board, session.Reporter]:
    board = Board([Record(named("vda")), Record(named("vdb"))], machine.kit.wall)
    return board, session.Reporter(board, peer, machine.kit)


def test_progress_is_told_every_ten_seconds_and_results_at_once(machine: Machine) -> None:
    """More reports would only load the registry."""
    peer = Peer()
    board, reports = reporter(machine, peer)
    for _ in range(25):
        board.update(board.records[0], percent=machine.time)
        reports.progress()
        machine.time += 1
    assert [report["drives"][0]["percent"] for report in peer.reports] == [0, 10, 20]

    board.update(board.records[1], result="Succeeded")
    reports.progress()
    reports.progress()
    assert len(peer.reports) == 4


def test_a_registry_that_asks_for_a_pause_has_it(machine: Machine) -> None:
    """Retry-After is used when it is longer than the probe's own pause."""
    peer = Peer(NotAccepted("busy", retry_after=60))
    _, reports = reporter(machine, peer)
    for _ in range(60):
        reports.progress()
        machine.time += 1
    assert len(peer.reports) == 1

    reports.progress()
    assert len(peer.reports) == 2


def test_waiting_ends_with_news(machine: Machine) -> None:
    """A result before the wait is not missed; when all drives have one there is no wait."""
    board, _ = reporter(machine, Peer())
    board.update(board.records[0], result="Succeeded")
    board.wait(0, 30)

    waiting = threading.Thread(target=board.wait, args=(board.version, 30))
    waiting.start()
    board.update(board.records[1], result="Failed")
    waiting.join(20)

    assert not waiting.is_alive()
    board.wait(board.version, 30)
    assert board.done()
    assert not board.succeeded()
