"""metalctl move as a process: its plan, its JSON output, and its errors."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from metal.cli.main import main
from tests.cli import live

pytestmark = pytest.mark.life

ENDPOINT = {"metadata": {"name": "e1"}, "spec": {"macAddress": "00:00:5e:00:53:01", "ip": "192.0.2.1"}}


async def test_a_dry_run_prints_the_plan_and_changes_nothing(tmp_path: Path) -> None:
    """The plan counts objects by kind; neither side is paused afterwards."""
    async with live.api(tmp_path / "a") as here, live.api(tmp_path / "b") as there:
        await here.client.create(live.KINDS.endpoint, ENDPOINT)
        code, out, err = await here.metalctl(
            "move", "--to-kubeconfig", str(there.kubeconfig), "--dry-run", "-o", "json"
        )
        assert (code, err) == (0, "")
        assert json.loads(out)["objects"] == {"Endpoint": 1}
        assert (await there.client.list(live.KINDS.endpoint)).items == ()


async def test_objects_move_with_yes_and_the_result_is_json(tmp_path: Path) -> None:
    """Without managers the move waits for none."""
    async with live.api(tmp_path / "a") as here, live.api(tmp_path / "b") as there:
        await here.client.create(live.KINDS.endpoint, ENDPOINT)
        code, out, err = await here.metalctl("move", "--to-kubeconfig", str(there.kubeconfig), "--yes", "-o", "json")
        assert code == 0, err
        assert json.loads(out)["objects"]["Endpoint"] == 1
        assert "all managers have stopped: none is running" in err
        assert [e.metadata.name for e in (await there.client.list(live.KINDS.endpoint)).items] == ["e1"]


async def test_a_home_that_is_not_empty_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """A target with objects is an error with exit code 1."""
    async with live.api(tmp_path / "a") as here, live.api(tmp_path / "b") as there:
        await there.client.create(live.KINDS.endpoint, ENDPOINT)
        code, _, err = await here.metalctl("move", "--to-kubeconfig", str(there.kubeconfig), "--yes")
        assert code == 1
        assert "Endpoint e1" in err
        assert "must be empty" in err


async def test_an_api_is_not_moved_into_itself(tmp_path: Path) -> None:
    """Source and target are distinguished by the UID of the namespace of the manager."""
    async with live.api(tmp_path / "a") as here:
        code, _, err = await here.metalctl("move", "--to-kubeconfig", str(here.kubeconfig), "--yes")
        assert code == 1
        assert "the same API" in err


async def test_a_move_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    """Without a terminal, a move without --yes fails and names --yes; the question has the URL of the source."""
    async with live.api(tmp_path / "a") as here, live.api(tmp_path / "b") as there:
        await here.client.create(live.KINDS.endpoint, ENDPOINT)
        code, _, err = await here.metalctl("move", "--to-kubeconfig", str(there.kubeconfig))
        assert code == 1
        assert "nothing was changed; use --yes to move without confirmation" in err
        assert (await there.client.list(live.KINDS.endpoint)).items == ()


async def test_status_says_that_the_objects_were_moved(tmp_path: Path) -> None:
    """`metalctl status` of the source names the target on stderr; that of the target prints no warning."""
    async with live.api(tmp_path / "a") as here, live.api(tmp_path / "b") as there:
        await here.client.create(live.KINDS.endpoint, ENDPOINT)
        await here.metalctl("move", "--to-kubeconfig", str(there.kubeconfig), "--yes")
        table, programs = await here.metalctl("status"), await here.metalctl("status", "-o", "json")
        new = await there.metalctl("status")
    moved = f"these objects are no longer valid: they were moved to {there.kubeconfig}\n"
    assert (table[0], table[2]) == (0, moved)
    assert programs == (0, "[]\n", moved)
    assert (new[0], new[2]) == (0, "")


def test_one_target_is_needed_and_only_one(tmp_path: Path) -> None:
    """No target or two targets are a usage error with exit code 2."""
    result = CliRunner().invoke(main, ["move", "--yes"])
    assert result.exit_code == 2
    assert "exactly one of --to-kubeconfig and --to-data" in result.output
