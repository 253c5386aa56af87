"""`metalctl evidence` against a running API: list, show, verify."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metal.api.core import CONFIG_MAP, NAMESPACE
from metal.api.sanitization import FirmwareReset
from metal.evidence import record
from metal.evidence.keys import KeyStore
from metal.evidence.signing import SigningKey
from metal.evidence.verdict import Verdict
from metal.kube.client.http import HTTPClient
from tests.cli.live import KINDS, Live, api
from tests.evidence.drives import erased

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NS = "metal-system"
OWED = Verdict(owed=("drive sda (serial S1) is missing",))


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    async with api(tmp_path) as running:
        await running.client.create(NAMESPACE, {"metadata": {"name": NS}})
        yield running


async def write(live: Live, name: str, *, server: str = "s1", verdict: Verdict | None = None) -> None:
    """Create evidence, signed if it has a result, else running."""
    spec = {"serverRef": {"name": server}, "policy": "Clear", "claimUID": "c", "systemUUID": "u", "bootWindow": "b"}
    made = await live.client.create(KINDS.evidence, {"metadata": {"name": name}, "spec": spec})
    status = {"phase": "Running", "drives": msgspec.to_builtins((erased(slot="Bay 3"),))}
    made = await live.client.patch_status(KINDS.evidence, name, {"status": status})
    if verdict is not None:
        key = await KeyStore(live.client, KINDS, NS, "key").signing_key()
        firmware = (FirmwareReset(action="ClearTPM", result="Succeeded", ended_at=NOW),)
        await record.conclude(live.client, KINDS, made, verdict, key, NOW, firmware)


async def test_list_shows_each_evidence(live: Live) -> None:
    """The list has a row for each evidence, oldest first; --server filters it, and -o json prints objects."""
    await write(live, "s1-a", verdict=Verdict())
    await write(live, "s2-b", server="s2", verdict=OWED)
    code, out, _ = await live.run("evidence", "list")
    rows = out.splitlines()
    assert code == 0
    assert rows[0].split()[:4] == ["NAME", "SERVER", "POLICY", "PHASE"]
    assert ["Succeeded" in rows[1], "Failed" in rows[2], "serial S1" in rows[2]] == [True] * 3
    _, out, _ = await live.run("evidence", "list", "--server", "s2", "-o", "json")
    (only,) = json.loads(out)
    assert (only["kind"], only["metadata"]["name"]) == ("SanitizationEvidence", "s2-b")


async def test_an_empty_list_is_explained(live: Live) -> None:
    """An empty list prints a sentence instead of a table."""
    assert (await live.run("evidence", "list"))[1].startswith("no evidence found")


async def test_show_lists_each_drive(live: Live) -> None:
    """The output has serial number, slot, method and samples of each drive."""
    await write(live, "s1-a", verdict=OWED)
    code, out, _ = await live.run("evidence", "show", "s1-a")
    assert code == 0
    assert "open: drive sda (serial S1) is missing" in out
    assert "firmware: ClearTPM Succeeded" in out
    (row,) = [line for line in out.splitlines() if "Overwrite" in line]
    assert all(word in row for word in ("S1", "Bay 3", "Succeeded", "Clear", "8, 0 differ"))
    _, out, _ = await live.run("evidence", "show", "s1-a", "-o", "json")
    assert json.loads(out)["status"]["signature"]["algorithm"] == "Ed25519"


@pytest.mark.behaviour("Cleanup", "`metalctl evidence show` prints percent and remaining time of each drive.")
async def test_show_has_the_progress_of_a_drive(live: Live) -> None:
    """The output has the percentage, and the remaining time if it is known."""
    await write(live, "s1-a")
    running = (
        erased("S1", result="Running", percent=43, seconds_left=3700),
        erased("S2", result="Running", percent=0, seconds_left=None),
    )
    drives = msgspec.to_builtins(running)
    await live.client.patch_status(KINDS.evidence, "s1-a", {"status": {"drives": drives}})

    _, out, _ = await live.run("evidence", "show", "s1-a")

    first, second = (next(line for line in out.splitlines() if serial in line) for serial in ("S1", "S2"))
    assert "Running, 43 %, 1h1m40s left" in first
    assert "Running, 0 %" in second
    assert "left" not in second


async def test_show_of_missing_evidence_names_the_list(live: Live) -> None:
    """A missing evidence is an error with exit code 1."""
    code, _, err = await live.run("evidence", "show", "nothing")
    assert (code, "metalctl evidence list" in err) == (1, True)


async def test_verify_accepts_the_key_of_the_api_and_a_key_file(live: Live, tmp_path: Path) -> None:
    """All completed evidence is verified; running evidence is no failure."""
    await write(live, "s1-a", verdict=Verdict())
    await write(live, "s1-b")
    code, out, _ = await live.run("evidence", "verify")
    assert (code, "s1-a: valid" in out, "s1-b" in out, "1 signatures are valid" in out) == (0, True, False, True)
    (pem,) = (await live.client.get(CONFIG_MAP, "key-public", NS)).data.values()
    file = tmp_path / "key.pem"
    file.write_text(pem)
    code, out, _ = await live.run("evidence", "verify", "s1-a", "--public-key", str(file), "-o", "json")
    (one,) = json.loads(out)
    assert (code, one["holds"], one["problem"]) == (0, True, "")


async def test_verify_ends_with_1_when_something_was_changed(live: Live) -> None:
    """The message names the changed evidence and the reason."""
    await write(live, "s1-a", verdict=OWED)
    await live.client.patch_status(KINDS.evidence, "s1-a", {"status": {"owed": None, "phase": "Succeeded"}})
    code, out, err = await live.run("evidence", "verify")
    assert (code, "s1-a: it was changed after it was signed" in out) == (1, True)
    assert "1 of 1 signatures are not valid" in err


async def test_verify_ends_with_1_for_a_key_that_is_not_trusted(live: Live, tmp_path: Path) -> None:
    """A key file takes precedence over the keys in the API."""
    await write(live, "s1-a", verdict=Verdict())
    file = tmp_path / "other.pem"
    file.write_text(SigningKey.new().public.pem)
    code, out, _ = await live.run("evidence", "verify", "--public-key", str(file))
    assert (code, "is unknown" in out) == (1, True)


async def test_verify_of_evidence_without_a_verdict_ends_with_1_when_it_was_asked_for(live: Live) -> None:
    """Named evidence must be completed."""
    await write(live, "s1-b")
    code, out, _ = await live.run("evidence", "verify", "s1-b")
    assert (code, "s1-b: it is not signed" in out) == (1, True)


async def test_an_open_record_is_no_failure(live: Live) -> None:
    """The unsigned record of a deleted Server is listed as open; verify fails for it only when it is named."""
    await write(live, "s1-a", verdict=Verdict())
    spec = {"serverRef": {"name": "s2"}, "policy": "Clear", "claimUID": "c", "systemUUID": "u"}
    await live.client.create(KINDS.evidence, {"metadata": {"name": "owed-u-1"}, "spec": spec})
    code, out, err = await live.run("evidence", "verify")
    assert (code, "owed-u-1: open: its drives are not erased yet" in out) == (0, True), (out, err)
    assert "1 signatures are valid, and no evidence is missing; 1 records are open" in out
    code, out, _ = await live.run("evidence", "verify", "-o", "json")
    results = {one["name"]: (one["holds"], one["open"]) for one in json.loads(out)}
    assert (code, results) == (0, {"s1-a": (True, False), "owed-u-1": (False, True)})
    assert (await live.run("evidence", "verify", "owed-u-1"))[0] == 1
    (row,) = [line for line in (await live.run("evidence", "list"))[1].splitlines() if "owed-u-1" in line]
    assert "Open" in row


async def test_verify_misses_a_signed_record_that_was_made_to_look_open(live: Live) -> None:
    """A record without phase and signature that the chain of its machine names is reported, and not as open."""
    await write(live, "s1-a", verdict=Verdict())
    await live.client.patch_status(
        KINDS.evidence, "s1-a", {"status": {"phase": None, "signature": None, "sequence": None}}
    )
    code, out, _ = await live.run("evidence", "verify")
    assert (code, "s1-a: missing" in out) == (1, True), out


async def test_a_file_that_is_no_key_is_a_wrong_command_line(live: Live, tmp_path: Path) -> None:
    """An invalid key file is a usage error with exit code 2."""
    file = tmp_path / "x.pem"
    file.write_text("x")
    code, _, err = await live.run("evidence", "verify", "--public-key", str(file))
    assert code == 2
    assert "no public key in PEM" in " ".join(err.split())


async def test_verify_ends_with_1_when_evidence_is_missing(live: Live) -> None:
    """Evidence that was deleted is reported under its name: in the middle, the last one, and with --server."""
    for name in ("s1-a", "s1-b", "s1-c"):
        await write(live, name, verdict=Verdict())
    code, out, _ = await live.run("evidence", "verify")
    assert (code, "3 signatures are valid, and no evidence is missing" in out) == (0, True)
    await live.client.delete(KINDS.evidence, "s1-b")
    code, out, err = await live.run("evidence", "verify", "--server", "s1")
    assert (code, "s1-b: missing: s1-c, number 3 of its machine, names it" in out) == (1, True)
    assert "or their evidence is missing" in err
    await live.client.delete(KINDS.evidence, "s1-c")
    code, out, _ = await live.run("evidence", "verify", "-o", "json")
    lost = [one for one in json.loads(out) if not one["holds"]]
    assert (code, [one["name"] for one in lost]) == (1, ["s1-c"])
    assert "the last record, number 3" in lost[0]["problem"]


async def test_verify_misses_no_evidence_that_is_completed_meanwhile(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is signed between two reads is no missing one: the record is written before its ConfigMap."""
    await write(live, "s1-a", verdict=Verdict())
    read, loop, reads = HTTPClient.list, asyncio.get_running_loop(), []

    async def racing(self: HTTPClient, kind: Any, *args: Any, **more: Any) -> Any:
        found = await read(self, kind, *args, **more)
        reads.append(kind)
        asyncio.run_coroutine_threadsafe(write(live, f"s1-{len(reads)}", verdict=Verdict()), loop).result(30)
        return found

    monkeypatch.setattr(HTTPClient, "list", racing)
    code, out, err = await live.run("evidence", "verify")
    assert (code, len(reads) > 2) == (0, True), (out, err)


async def test_show_says_what_the_evidence_proves(live: Live) -> None:
    """With the trust of its boot."""
    await write(live, "s1-a", verdict=Verdict())
    _, out, _ = await live.run("evidence", "show", "s1-a")
    assert "boot: trust unknown" in out
    assert "proves: A system with the one-time report token of boot b of server s1 reported these results" in out
