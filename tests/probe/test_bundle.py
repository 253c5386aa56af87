"""The probe as one file: Ignition carries what was tested, for every supported Python."""

import ast
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from metal.probe import agent, bundle
from tests.probe import machines
from tests.probe.loopback import serve

SOURCES = sorted(bundle.HERE.rglob("*.py"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "metalprobe.pyz"
    path.write_bytes(bundle.zipapp())
    return path


def start(archive: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the archive without the checkout on its path."""
    command = [sys.executable, "-I", "-W", "error", str(archive), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=archive.parent)


def fake(tmp_path: Path) -> str:
    """The root of a fake machine."""
    return str(machines.server(tmp_path / "root").root)


def test_the_archive_is_small_and_always_the_same() -> None:
    """Its digest is in Ignition configs: it must not depend on time or place."""
    first, second = bundle.zipapp(), bundle.zipapp()

    assert hashlib.sha512(first).digest() == hashlib.sha512(second).digest()
    assert len(first) < 60_000
    with zipfile.ZipFile(io.BytesIO(first)) as packed:
        assert "metal/probe/cli.py" in packed.namelist()
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_archive_reports_to_a_registry(archive: Path, tmp_path: Path) -> None:
    """Started alone it gathers, retries a failure, and ends when the report is accepted."""
    (tmp_path / "token").write_text("tok\n")
    options = [f"--token=@{tmp_path / 'token'}", "--server-uuid=u-1", "--lldp-duration=0", f"--root={fake(tmp_path)}"]

    with serve(503, 201) as peer:
        done = start(archive, f"--registry-url={peer.url}", *options)

    assert done.returncode == agent.DONE, done.stderr
    assert peer.tokens == ["Bearer tok", "Bearer tok"]
    assert peer.bodies[1]["systemUUID"] == "u-1"
    assert len(peer.bodies[1]["data"]["cpu"]) == 2
    assert "503" in done.stderr


def test_a_spent_token_ends_the_archive_with_a_sentence(archive: Path, tmp_path: Path) -> None:
    """The exit code is EX_NOPERM and the token is not shown."""
    with serve(410) as peer:
        done = start(
            archive, f"--registry-url={peer.url}", "--server-uuid=u", "--token=s3cret", "--lldp-duration=0",
            f"--root={fake(tmp_path)}",
        )  # fmt: skip

    assert done.returncode == agent.REFUSED
    assert "token was used before" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


def test_a_dry_run_prints_the_report(archive: Path, tmp_path: Path) -> None:
    """Without a registry."""
    done = start(archive, "--dry-run", "--lldp-duration=0", f"--root={fake(tmp_path)}")

    assert done.returncode == agent.DONE
    assert json.loads(done.stdout)["storage"][0]["name"] == "nvme0n1"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--server-uuid=u", "--token=t"], "--registry-url"),
        (["--registry-url=http://r", "--token=t"], "--server-uuid"),
        (["--registry-url=http://r", "--server-uuid=u"], "--token"),
        (["--registry-url=http://r", "--server-uuid=u", "--token=@/no/such/file"], "/no/such/file"),
        (["--registry-url=http://r", "--server-uuid=u", "--token-file=/no/such/file"], "/no/such/file"),
        (["--registry-url=file:///etc", "--server-uuid=u", "--token=t"], "--registry-url"),
    ],
)
def test_missing_options_are_named(archive: Path, options: list[str], named: str) -> None:
    """One message, exit code 2, no traceback."""
    done = start(archive, *options)

    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_sources_are_python_3_9(path: Path) -> None:
    """The syntax parses as 3.9, and annotations are never evaluated."""
    tree = ast.parse(path.read_text(), feature_version=(3, 9))

    needs_future = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    assert not needs_future or "from __future__ import annotations" in path.read_text()


def imported(path: Path) -> Iterator[str]:
    """The modules that a source file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_sources_import_the_standard_library_only(path: Path) -> None:
    """Nothing else is installed on the machine."""
    foreign = [
        name
        for name in imported(path)
        if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("metal.probe")
    ]

    assert foreign == []
