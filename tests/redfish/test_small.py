"""Paths, tasks and quirks."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.redfish import BMCProtocolError
from metal.redfish.paths import local_path, redirect_path
from metal.redfish.quirks import NONE, TABLE, Machine, Quirks, Row, quirks_for
from metal.redfish.tasks import Task, parse_task


@given(st.text() | st.text(alphabet="/:@?#[]%.hts\r\n\\ "))
def test_a_local_path_is_a_path_or_an_error(url: str) -> None:
    """Never a host, never a control character."""
    try:
        path = local_path(url)
    except BMCProtocolError:
        return
    assert path.startswith("/")
    assert not path.startswith("//")
    assert all(ord(char) > 32 for char in path)


@given(st.text(alphabet="/:@?#[]%.htps10bmc"))
def test_a_redirect_stays_or_is_refused(url: str) -> None:
    """Whatever the Location says."""
    with contextlib.suppress(BMCProtocolError):
        assert redirect_path(url, "https://bmc:443").startswith("/")


def test_userinfo_in_a_redirect_does_not_hide_the_host() -> None:
    """https://bmc@evil/ is evil's."""
    with pytest.raises(BMCProtocolError):
        redirect_path("https://bmc:443@evil.example/x", "https://bmc:443")


@pytest.mark.parametrize(
    ("headers", "body", "task"),
    [
        ({"location": "/m/1"}, None, Task(monitor="/m/1")),
        ({}, {"TaskMonitor": "/m/2", "PercentComplete": 5}, Task(monitor="/m/2", percent=5)),
        ({}, {"@odata.id": "/t/3", "TaskState": "Completed"}, Task(uri="/t/3", state="Completed")),
        ({"location": "nonsense"}, {"TaskState": 7, "PercentComplete": True}, Task()),
    ],
)
def test_a_task_is_found_wherever_the_bmc_puts_it(headers: dict[str, str], body: object, task: Task) -> None:
    """Location, TaskMonitor or the Task itself; junk is nothing."""
    assert parse_task(headers, body) == task


def test_a_completed_task_has_ended() -> None:
    """Nothing more to poll."""
    assert Task(state="Completed").ended
    assert not Task(state="Running").ended


@pytest.mark.parametrize(
    ("machine", "quirks"),
    [
        (Machine("Supermicro", "SYS-1"), Quirks(repeat_boot_mode=True)),
        (Machine("Super Micro Computer, Inc."), Quirks(repeat_boot_mode=True)),
        (Machine("ASRockRack"), Quirks(boot_in_settings=True)),
        (Machine("Lenovo", "GB300 NVL"), Quirks(no_expand=True)),
        (Machine("Lenovo", "SR650"), NONE),
        (Machine("Dell Inc."), NONE),
        (Machine(), NONE),
    ],
)
def test_each_row_matches_its_machines_and_no_others(machine: Machine, quirks: Quirks) -> None:
    """The table, row by row."""
    assert quirks_for(machine) == quirks


def test_quirks_of_several_rows_add_up_and_firmware_counts() -> None:
    """A row may be for one firmware only."""
    table = (
        Row("acme", Quirks(no_expand=True), "test"),
        Row("acme", Quirks(repeat_boot_mode=True), "test", firmware=r"^1\."),
    )
    assert quirks_for(Machine("ACME", "", "1.2"), table) == Quirks(no_expand=True, repeat_boot_mode=True)
    assert quirks_for(Machine("ACME", "", "2.0"), table) == Quirks(no_expand=True)


def test_every_row_says_why() -> None:
    """A row without a reason cannot be removed again."""
    assert all(row.why and row.quirks != NONE for row in TABLE)
