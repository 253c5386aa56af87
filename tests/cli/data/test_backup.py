"""metalctl backup and restore, against a running control plane and on the folder of a stopped one."""

import asyncio
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from metal.api.core import CONFIG_MAP
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage import backup
from metal.cli.main import main
from metal.cli.support.datadir import locked
from metal.kube.meta.clock import system_clock
from metal.move.pause import MARK
from tests.cli.live import Live, api

pytestmark = pytest.mark.life


def metalctl(*args: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, list(args))


async def names(live: Live) -> list[str]:
    """Return the names of the ConfigMaps in the default namespace."""
    return [found.metadata.name for found in (await live.client.list(CONFIG_MAP, "default")).items]


async def make(live: Live, name: str) -> None:
    """Create a ConfigMap."""
    await live.client.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})


async def test_a_backup_is_restored_while_the_api_is_running(tmp_path: Path) -> None:
    """Objects removed since the backup are restored, objects created since are removed, and the command prints the
    counts."""
    copy = tmp_path / "copy.db"
    async with api(tmp_path / "data") as live:
        await make(live, "kept")
        code, out, _ = await live.metalctl("backup", str(copy))
        assert (code, out.startswith(f"{copy}: ")) == (0, True)
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        await live.client.delete(CONFIG_MAP, "kept", "default")
        await make(live, "new")

        code, out, _ = await live.metalctl("restore", str(copy), "--yes")

        assert code == 0
        assert out.splitlines()[-1] == "restored: 1 written, 1 removed"
        assert await names(live) == ["kept"]


async def test_a_restore_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    """Without a terminal, a restore without --yes changes nothing and names --yes."""
    copy = tmp_path / "copy.db"
    async with api(tmp_path / "data") as live:
        await live.metalctl("backup", str(copy))
        await make(live, "new")
        code, out, err = await live.metalctl("restore", str(copy))
        assert (code, await names(live)) == (1, ["new"])
        assert "0 objects to write, 1 to remove" in out
        assert "use --yes" in err


async def pause(live: Live) -> None:
    """Create the pause of a move."""
    body = {"metadata": {"name": MARK, "namespace": "default"}, "data": {"role": "moved"}}
    await live.client.create(CONFIG_MAP, body)


@pytest.mark.behaviour(
    "Embedded API and assembly", "A restore does not end the pause of a move, after which two managers would act."
)
async def test_a_restore_does_not_end_the_pause_of_a_move(tmp_path: Path) -> None:
    """While objects are moved, and in an API that they were moved away from, it is refused and changes nothing."""
    copy = tmp_path / "copy.db"
    async with api(tmp_path / "data") as live:
        await live.metalctl("backup", str(copy))
        await pause(live)
        code, _, err = await live.metalctl("restore", str(copy), "--yes")
        assert (code, await names(live)) == (1, [MARK])
    assert f"delete the ConfigMap default/{MARK}" in " ".join(err.split())


async def test_the_pause_of_a_move_in_a_folder_is_not_ended(tmp_path: Path) -> None:
    """The same for the folder of a stopped control plane."""
    copy, folder = tmp_path / "copy.db", tmp_path / "data"
    backup.save(copy, 1, [])
    async with api(folder) as live:
        await pause(live)
    result = metalctl("restore", str(copy), "--data", str(folder))
    assert (result.exit_code, "a restore would end the pause" in " ".join(result.output.split())) == (1, True)
    async with api(folder) as live:
        assert await names(live) == [MARK]


async def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """A dry run prints the counts and ends with 0."""
    copy = tmp_path / "copy.db"
    async with api(tmp_path / "data") as live:
        await live.metalctl("backup", str(copy))
        await make(live, "new")
        code, out, _ = await live.metalctl("restore", str(copy), "--dry-run")
        assert (code, await names(live)) == (0, ["new"])
        assert "0 objects to write, 1 to remove" in out


async def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """The message names the existing file, which is unchanged."""
    copy = tmp_path / "copy.db"
    copy.write_text("dear")
    async with api(tmp_path / "data") as live:
        code, _, err = await live.metalctl("backup", str(copy))
    assert (code, copy.read_text()) == (1, "dear")
    assert "exists; choose another file" in err


async def test_a_planted_file_or_link_does_not_receive_the_backup(tmp_path: Path) -> None:
    """In a folder that others can write to, no predictable draft or link receives the backup."""
    ours, laid = tmp_path / "ours", tmp_path / ".copy.db.part"
    ours.write_text("precious")
    laid.symlink_to(ours)
    async with api(tmp_path / "data") as live:
        code, _, _ = await live.metalctl("backup", str(tmp_path / "copy.db"))
    assert (code, ours.read_text()) == (0, "precious")
    assert laid.is_symlink()


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The message names the file and the error."""
    async with api(tmp_path / "data") as live:
        code, _, err = await live.metalctl("backup", str(tmp_path / "nowhere" / "copy.db"))
    assert code == 1
    assert "No such file or directory" in err


async def test_a_file_that_is_no_backup_is_rejected(tmp_path: Path) -> None:
    """The message of the API server is printed, and nothing changes."""
    file = tmp_path / "letter"
    file.write_text("not a database " * 100)
    async with api(tmp_path / "data") as live:
        await make(live, "kept")
        code, _, err = await live.metalctl("restore", str(file), "--yes")
        assert (code, await names(live)) == (1, ["kept"])
    assert "the API server rejected the request: the copy: damaged" in err


def test_an_unreachable_api_server_is_reported(tmp_path: Path) -> None:
    """The message has the way out."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(asyncio.run(_kubeconfig_of_the_past(tmp_path)))
    result = metalctl("backup", str(tmp_path / "copy.db"), "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1
    assert "the API server did not answer" in result.output
    assert not (tmp_path / "copy.db").exists()


async def _kubeconfig_of_the_past(folder: Path) -> bytes:
    async with api(folder / "data") as live:
        return live.kubeconfig.read_bytes()


_KILLED = """
import asyncio, sys
from pathlib import Path
from metal.api.core import CONFIG_MAP
from metal.apiserver.server import EmbeddedAPI
from metal.kube.meta.clock import system_clock
from metal.move.pause import MARK

async def main():
    api = EmbeddedAPI(Path(sys.argv[1]), system_clock)
    await api.start()
    await api.client().create(CONFIG_MAP, {"metadata": {"name": "written", "namespace": "default"}})
    print("written", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """Return the data folder of an API that was killed with SIGKILL."""
    data = tmp_path / "data"
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(data)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return data


async def _found(data: Path) -> tuple[list[str], int]:
    server = EmbeddedAPI(data, system_clock)
    await server.start()
    listed = await server.client().list(CONFIG_MAP, "default")
    await server.stop()
    return [item.metadata.name for item in listed.items], int(listed.resource_version)


def test_a_crashed_folder_is_backed_up_and_restored_elsewhere(crashed: Path, tmp_path: Path) -> None:
    """Everything acknowledged before the crash is in the backup, and another folder can start with it."""
    copy, other = tmp_path / "copy.db", tmp_path / "other"
    assert metalctl("backup", str(copy), "--data", str(crashed)).exit_code == 0
    assert metalctl("restore", str(copy), "--data", str(other)).exit_code == 0
    assert asyncio.run(_found(other))[0] == ["written"]


def test_a_folder_keeps_what_a_restore_replaced(crashed: Path, tmp_path: Path) -> None:
    """The previous objects are stored beside the database, and versions continue to increase."""
    empty = tmp_path / "empty.db"
    backup.save(empty, 1, [])
    before = asyncio.run(_found(crashed))[1]
    result = metalctl("restore", str(empty), "--data", str(crashed))
    assert result.exit_code == 0, result.output
    assert "state.db.before-restore" in result.output
    found, version = asyncio.run(_found(crashed))
    assert (found, version > before) == ([], True)
    back = metalctl("restore", str(crashed / "state.db.before-restore"), "--data", str(tmp_path / "other"))
    assert back.exit_code == 0
    assert asyncio.run(_found(tmp_path / "other"))[0] == ["written"]


def test_a_restore_that_dies_before_it_replaced_anything_has_lost_nothing(
    crashed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log is written to the database before it is replaced."""
    empty = tmp_path / "empty.db"
    backup.save(empty, 1, [])

    def dies(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dies)
        assert metalctl("restore", str(empty), "--data", str(crashed)).exit_code != 0
    assert asyncio.run(_found(crashed))[0] == ["written"]


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    """A folder that another metalctl uses is neither backed up nor replaced."""
    asyncio.run(_found(tmp_path / "data"))
    copy = tmp_path / "copy.db"
    backup.save(copy, 1, [])
    with locked(tmp_path / "data"):
        result = metalctl("restore", str(copy), "--data", str(tmp_path / "data"))
    assert result.exit_code == 1
    assert "is in use by another metalctl" in result.output
