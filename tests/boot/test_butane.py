"""Butane documents, converted by the real program where it is, else by one that behaves as a case needs."""

import asyncio
import json
import os
import resource
from pathlib import Path

import pytest

from metal.boot import butane
from metal.boot.butane import Butane, Converted, diagnostics
from metal.boot.errors import ButaneUnavailable, IgnitionError
from tests.boot.programs import program

DOCUMENT = b"variant: fcos\nversion: 1.5.0\npasswd:\n  users:\n    - name: core\n      password_hash: hunter2\n"
REAL = os.environ.get("BUTANE", "butane")


def counting(folder: Path, body: str) -> str:
    return program(folder, f"echo >> {folder}/runs\ncat > /dev/null\n{body}")


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


async def converted(document: bytes, name: str = REAL) -> Converted:
    return await Butane(name).convert(document)


async def problem(document: bytes, name: str = REAL) -> str:
    with pytest.raises(IgnitionError) as caught:
        await converted(document, name)
    return str(caught.value)


@pytest.mark.wire
@pytest.mark.needs("butane")
@pytest.mark.parametrize(("variant", "version"), [("fcos", "1.5.0"), ("flatcar", "1.1.0")])
async def test_the_program_converts_documents_of_both_variants(variant: str, version: str) -> None:
    """The result is Ignition of spec 3."""
    document = (
        f"variant: {variant}\nversion: {version}\nstorage:\n  files:\n    - path: /a\n      contents: {{inline: hi}}\n"
    )
    found = await converted(document.encode())
    config = json.loads(found.config)
    assert config["ignition"] == {"version": "3.4.0"}
    assert config["storage"]["files"][0]["contents"]["source"] == "data:,hi"
    assert found.warnings == ""


@pytest.mark.wire
@pytest.mark.needs("butane")
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("variant: hunter2\nversion: 1.5.0", "butane: butane does not know this variant with this version"),
        ("passwd: {}", "butane: error parsing variant; must be specified"),
        (
            "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - path: hunter2",
            "butane: line 5 col 13: path not absolute",
        ),
        (
            "variant: fcos\nversion: 1.5.0\nsystemd:\n  units:\n    - name: a.service\n      enabled: hunter2",
            "butane: line 6: cannot unmarshal !!str … into bool",
        ),
        (
            "variant: fcos\nversion: 1.5.0\nstorage: hunter2 and hunter3",
            "butane: line 3: cannot unmarshal !!str … into v0_5.Storage",
        ),
        (
            "variant: fcos\nversion: 1.5.0\nhunter2: 1\nhunter2: 2",
            "butane: line 4: mapping key … already defined at line 3",
        ),
        ("variant: fcos\nversion: 1.5.0\na: *hunter2", "butane: unknown anchor … referenced"),
        ("hunter2", "butane: line 1: cannot unmarshal !!str … into config.commonFields"),
        (
            "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - path: /a\n      contents: {local: hunter2}",
            "butane: line 6 col 25: local file paths are relative to a files directory that must be specified with "
            "-d/--files-dir",
        ),
    ],
)
async def test_a_diagnostic_names_the_line_and_repeats_nothing_of_the_document(lines: str, says: str) -> None:
    """The document holds secrets; what is said of it becomes a condition."""
    found = await problem(lines.encode())
    assert found == says
    assert "hunter" not in found


@pytest.mark.wire
@pytest.mark.needs("butane")
async def test_an_unknown_key_is_a_warning() -> None:
    """It names the line, not the key, which may be a value that was written in the wrong place."""
    found = await converted(DOCUMENT + b"      hunter3: x\n")
    assert found.warnings == "line 7 col 7: Unused key"


@pytest.mark.wire
@pytest.mark.needs("butane")
async def test_a_document_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is ended after its share of CPU time; the same document is not tried again."""
    monkeypatch.setattr(butane, "_LIMITS", ((resource.RLIMIT_CPU, 1),))
    many = ",".join(f"{{path: /a{number}}}" for number in range(40_000))
    machine = Butane(REAL)
    for _ in range(2):
        with pytest.raises(IgnitionError, match="takes more than 3 s or too much memory to convert"):
            await machine.convert(f"variant: fcos\nversion: 1.5.0\nstorage: {{files: [{many}]}}".encode())


async def test_where_no_program_is_the_way_out_is_said(tmp_path: Path) -> None:
    """Once it is installed, the next try succeeds."""
    machine = Butane(str(tmp_path / "butane"))
    with pytest.raises(ButaneUnavailable, match=r"not installed here: install it and set boot\.butane, or convert"):
        await machine.convert(DOCUMENT)
    program(tmp_path, "cat > /dev/null; echo {}")
    assert (await machine.convert(DOCUMENT)).config == b"{}\n"


async def test_an_empty_name_converts_nothing() -> None:
    """Although a program called butane may be in PATH."""
    assert "not installed here" in await problem(DOCUMENT, "")


async def test_a_program_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    """Such as one of another architecture."""
    other = program(tmp_path, "")
    await asyncio.to_thread(Path(other).write_bytes, b"\x7fELF")
    assert "cannot be started (Exec format error)" in await problem(DOCUMENT, other)


async def test_a_result_is_remembered_by_the_document(tmp_path: Path) -> None:
    """The same document is converted once, also one that is wrong; another one is converted anew."""
    machine = Butane(counting(tmp_path, "echo {}"))
    for _ in range(3):
        await machine.convert(DOCUMENT)
    assert runs(tmp_path) == 1
    await machine.convert(DOCUMENT + b"#")
    assert runs(tmp_path) == 2
    counting(tmp_path, "exit 1")
    for _ in range(3):
        with pytest.raises(IgnitionError, match="butane: the program failed with status 1"):
            await machine.convert(DOCUMENT + b"##")
    assert runs(tmp_path) == 3


async def test_what_is_remembered_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest result is forgotten first."""
    monkeypatch.setattr(butane, "_REMEMBERED", 3000)
    machine = Butane(counting(tmp_path, "echo {}"))
    for more in (b"1", b"2", b"3", b"3", b"1"):
        await machine.convert(DOCUMENT + more)
    assert runs(tmp_path) == 4


async def test_the_program_gets_no_environment_and_no_arguments(tmp_path: Path) -> None:
    """Its working directory is the root, and it reads the document from standard input."""
    found = await converted(DOCUMENT, program(tmp_path, 'cat > /dev/null; echo "$# $PWD $HOME $KUBECONFIG"'))
    assert found.config.strip() == b"0 /"


async def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may be the machine's fault, so the document is tried again."""
    monkeypatch.setattr(butane, "_WALL", 0.05)
    machine = Butane(counting(tmp_path, "exec sleep 60"))
    for _ in range(2):
        with pytest.raises(ButaneUnavailable, match="the machine is busy"):
            await machine.convert(DOCUMENT)


async def test_output_is_limited(tmp_path: Path) -> None:
    """More than an Ignition config may have is not kept in memory."""
    found = await problem(DOCUMENT, program(tmp_path, "cat > /dev/null; exec head -c 5000000 /dev/zero"))
    assert found.startswith("butane: ")


def test_other_lines_are_not_shown() -> None:
    """A crash of the program prints its memory."""
    printed = b"panic: hunter2\ngoroutine 1 [running]:\nmain.main()\n"
    assert list(diagnostics(printed, DOCUMENT)) == []
    assert list(diagnostics(b"error at $.x, line 1 col 2: wrong s3cr3t of core\n", b"x: s3cr3t\n")) == [
        "line 1 col 2: wrong … of core"
    ]
