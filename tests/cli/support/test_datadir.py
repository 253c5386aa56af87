"""The data folder: its lock, its API group, and what a failed start leaves in it."""

import errno
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from metal.cli.main import main
from metal.cli.run.start_failures import sentence
from metal.cli.support.datadir import OtherGroup, Unusable, locked

ELSEWHERE = "192.0.2.1:8443"
"""An address that no machine has (RFC 5737)."""


def up(data: Path | str, *args: str) -> tuple[int, str]:
    """Return exit code and output as one line."""
    result = CliRunner().invoke(main, ["up", "--data", str(data), *args])
    return result.exit_code, " ".join(result.output.split())


def test_another_api_group_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    """A folder with objects of another API group is rejected, because its objects would be invisible."""
    with locked(tmp_path) as folder:
        folder.keep_group("metal.ironcore.dev")
        folder.keep_group("metal.ironcore.dev")
    with locked(tmp_path) as folder, pytest.raises(OtherGroup, match=r"give --api-group metal\.ironcore\.dev"):
        folder.keep_group("metal.openkcm.dev")
    assert (tmp_path / "group").read_text() == "metal.ironcore.dev\n"
    assert stat.S_IMODE((tmp_path / "group").stat().st_mode) == 0o600


def test_up_refuses_another_api_group_and_keeps_everything(tmp_path: Path) -> None:
    """`metalctl up` exits with 1, and the message has both ways out."""
    (tmp_path / "group").write_text("metal.ironcore.dev\n")
    (tmp_path / "state.db").write_text("mine")
    code, text = up(tmp_path, "--api-group", "metal.openkcm.dev")
    assert code == 1
    assert "metal.ironcore.dev, not of metal.openkcm.dev" in text
    assert "choose another --data" in text
    assert (tmp_path / "state.db").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out() -> None:
    """The error names the folder and has no errno."""
    code, text = up("/proc/nothing-here")
    assert code == 1
    assert "the folder /proc/nothing-here cannot be used" in text
    assert "choose another --data" in text
    assert "Errno" not in text


@pytest.mark.parametrize("there", [False, True])
def test_an_address_of_another_machine_is_refused_and_leaves_nothing(there: bool, tmp_path: Path) -> None:
    """A folder that the failed start created is removed, and an empty one stays empty."""
    data = tmp_path / "data"
    if there:
        data.mkdir()
    code, text = up(data, "--api-listen", ELSEWHERE)
    assert code == 1
    assert "no network interface of this machine has that address" in text
    assert "--api-listen" in text
    assert data.exists() is there
    assert not there or not list(data.iterdir())


def test_a_failed_start_keeps_a_folder_that_had_something_in_it(tmp_path: Path) -> None:
    """A folder with content is not changed."""
    (tmp_path / "mine").write_text("x")
    assert up(tmp_path, "--api-listen", ELSEWHERE)[0] == 1
    assert (tmp_path / "mine").read_text() == "x"
    assert (tmp_path / "state.db").exists()


def test_undo_does_not_follow_links_out_of_the_folder(tmp_path: Path) -> None:
    """A link is removed, and its target is not."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    with locked(tmp_path / "data") as folder:
        (folder.path / "images").mkdir()
        (folder.path / "images" / "blob").write_text("x")
        (folder.path / "link").symlink_to(outside)
        folder.undo()
    assert not (tmp_path / "data").exists()
    assert (outside / "file").exists()


@pytest.mark.parametrize(
    ("exc", "way_out"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/data/state.db"),
            "/data/state.db: Permission denied; grant",
        ),
        (OSError(errno.EACCES, "bind on port 80: denied"), "ports below 1024"),
        (OSError(errno.EADDRINUSE, "taken"), "stop the program that uses it"),
        (Unusable("say this"), "say this"),
        (OSError("plain"), "plain"),
    ],
)
def test_every_expected_failure_has_its_sentence(exc: Exception, way_out: str) -> None:
    """Each expected failure has a message with the way out."""
    assert way_out in sentence(exc)
