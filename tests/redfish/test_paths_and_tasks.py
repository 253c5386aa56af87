"""Paths and tasks."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.redfish import BMCProtocolError
from metal.redfish.paths import local_path, redirect_path
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
    """For any Location."""
    with contextlib.suppress(BMCProtocolError):
        assert redirect_path(url, "https://bmc:443").startswith("/")


def test_userinfo_in_a_redirect_does_not_hide_the_host() -> None:
    """https://bmc@evil/ refers to the host evil."""
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
    """Location, TaskMonitor or the Task itself; other values are ignored."""
    assert parse_task(headers, body) == task


def test_a_completed_task_has_ended() -> None:
    """There is nothing left to poll."""
    assert Task(state="Completed").ended
    assert not Task(state="Running").ended
