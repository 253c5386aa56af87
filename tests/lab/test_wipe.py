"""A tenant's data is erased: the content of a machine's drives is read on the host, independent of the machine.

The tests are consecutive steps; after a failed step the others fail at once.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.lab import fill, story, tenant
from tests.lab.drives import MIB, Backing, Drive
from tests.lab.run import GENERIC, Run
from tests.lab.site import Site
from tests.lab.story import DEMO, HOME, STEP, Chain

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

LIAR = Drive("virtio", "TENANT-LIAR", 256 * MIB, discards=False)
SATA = Drive("sata", "TENANT-SATA", 72 * MIB, wwn="5000c500a1b2c3d4")
NVME = Drive("nvme", "TENANT-NVME", 72 * MIB)
SCSI = Drive("scsi", "TENANT-SCSI", 72 * MIB, wwn="5000c50015ea71ac")
VIRTIO = Drive("virtio", "TENANT-VIRTIO", 72 * MIB)
DRIVES = (VIRTIO, LIAR, SCSI, SATA, NVME)
"""Each larger than what the probe reads back whole."""
SIGNATURES = {NVME: "gpt", SATA: "linux_raid_member", SCSI: "LVM2_member", LIAR: "ext4"}
NVME_MODEL = "QEMU NVMe Ctrl"
SLOW = 12 * MIB
"""Bytes a second that one drive takes while it is erased, so that its progress can be seen."""
MARKER = "tenant" + secrets.token_hex((fill.MARKER - 6) // 2)


@pytest.fixture(scope="module")
def chain(run: Run, site: Site) -> Iterator[Chain]:
    """The chain with a machine of five drives, and the erasure that an operator gets who configures none. The images
    have the kernel for real hardware: Debian's for clouds knows no SATA."""
    with story.begin(run, site, images=GENERIC, drives=DRIVES, settings={}) as begun:
        yield begun


@dataclass
class Seen:
    """What a user can see between the claim's deletion and Available."""

    claim: str = ""
    """UID of the claim that has ended."""
    progress: list[tuple[int, str]] = field(default_factory=list)
    """Server: status.sanitizationProgress."""
    drives: list[dict[str, Any]] = field(default_factory=list)
    """SanitizationEvidence: status.drives."""
    waits: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """What `kubectl get servers` and `metalctl evidence show` print."""

    def look(self, chain: Chain) -> dict[str, Any] | None:
        """The Server once it is Available."""
        server = chain.server()
        status: dict[str, Any] = server["status"]
        told = status.get("sanitizationProgress")
        if told and (told.get("percent", 0), told.get("message", "")) not in self.progress:
            self.progress.append((told.get("percent", 0), told.get("message", "")))
            self._read(chain)
        wait = status.get("wait", {}).get("for", "")
        if wait and wait not in self.waits[-1:]:
            self.waits.append(wait)
        return server if status.get("state") == "Available" else None

    def _read(self, chain: Chain) -> None:
        kept = evidence(chain)
        self.drives += kept["status"].get("drives", [])
        self.texts.append(chain.operator.kubectl("get", "servers"))
        self.texts.append(chain.operator.metalctl("evidence", "show", kept["metadata"]["name"]))


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


def evidence(chain: Chain) -> dict[str, Any]:
    """The only evidence."""
    (found,) = chain.operator.objects("sanitizationevidences")
    return found


def world_wide_name(drive: Drive) -> str:
    """As Linux shows it; for QEMU's NVMe drives it derives one from vendor, serial number, model and namespace."""
    if drive is NVME:
        return f"nvme.1b36-{drive.serial.encode().hex()}-{NVME_MODEL.encode().hex()}-00000001"
    return f"naa.{drive.wwn}" if drive.wwn else ""


def backing(chain: Chain, drive: Drive) -> Backing:
    (found,) = [each for each in chain.machine.backings if each.drive is drive]
    return found


def share(each: Backing) -> float:
    """The fraction of a drive that still has the tenant's content."""
    whole = each.drive.size // fill.SECTOR * fill.PER_SECTOR
    return each.count(MARKER.encode()) / whole


def test_discovery_finds_every_drive(chain: Chain, run: Run) -> None:
    """Serial numbers, world-wide names and sizes are those set in QEMU."""
    chain.plug_in_bmc()
    run.wait_for("a Server", lambda: chain.operator.objects("servers"), 60)

    server = chain.wait_for_state("Available")

    run.write_json("server.json", server)
    known = {(d["serialNumber"], d.get("wwn", ""), d["size"]) for d in server["status"]["drives"]}
    assert known == {(drive.serial, world_wide_name(drive), drive.size) for drive in DRIVES}


def test_the_tenants_data_is_on_every_drive(chain: Chain, run: Run, say: Callable[[str], None]) -> None:
    """Without it the rest would prove nothing: the host finds the marker all over each backing file, and blkid finds
    what a partition table, a RAID, a volume group and a file system have left at its beginning."""
    signatures = {drive.serial: name for drive, name in SIGNATURES.items()}
    task = {"marker": MARKER, "home": f"http://{HOME}/home", "signatures": signatures}
    run.restart_clock()

    tenant.claim(chain.operator, "first", DEMO, Path(fill.__file__).read_text(), {"/etc/fill.json": json.dumps(task)})
    (_, _, body), *_ = run.wait_for("the tenant's word that it is done", lambda: chain.home.received, STEP)

    say(f"wipe: claim to filled drives: {run.since_start():.1f} s")
    assert json.loads(body)["filled"].keys() == {drive.serial for drive in DRIVES}
    for each in chain.machine.backings:
        assert share(each) > 0.98, each
        assert each.signature() == SIGNATURES.get(each.drive, ""), each
    assert share(backing(chain, VIRTIO)) == 1


@pytest.mark.behaviour(
    "Cleanup", "No byte of a tenant is left on virtio, SCSI, SATA and NVMe drives when the Server is Available."
)
def test_no_byte_of_it_is_left_when_the_server_is_available(
    chain: Chain, run: Run, seen: Seen, say: Callable[[str], None]
) -> None:
    """Every backing file is read completely as soon as the Server is Available: only zeroes, and no signature."""
    chain.machine.slow_down(backing(chain, LIAR), SLOW)
    (claim,) = chain.operator.objects("serverclaims", "-n", "default")
    seen.claim = claim["metadata"]["uid"]
    run.restart_clock()

    chain.operator.kubectl("delete", "serverclaim/first", "--wait=false")
    server = run.wait_for("an Available Server", lambda: seen.look(chain), STEP)

    say(f"wipe: release to Available: {run.since_start():.1f} s")
    for each in chain.machine.backings:
        assert each.count(MARKER.encode()) == 0, each
        assert each.written_bytes() == 0, each
        assert each.signature() == "", each
    assert not chain.machine.is_running()
    assert server["status"]["tenancy"]["sanitization"] == "Clear"
    (condition,) = [each for each in server["status"]["conditions"] if each["type"] == "Sanitized"]
    assert condition["status"] == "True"


def test_the_erasure_could_be_watched(seen: Seen, run: Run, say: Callable[[str], None]) -> None:
    """The Server says what it waits for and how much of all drives is done; the evidence says it of each drive, with
    the time that is left. Both are in what a user prints."""
    run.write_json("seen.json", seen.__dict__)
    say(f"wipe: progress: {'; '.join(f'{percent} % ({message})' for percent, message in seen.progress)}")

    assert "Sanitization" in seen.waits
    assert any(0 < percent < 100 for percent, _ in seen.progress)
    slow = [d for d in seen.drives if d["serialNumber"] == LIAR.serial and d["result"] == "Running"]
    assert any(0 < d.get("percent", 0) < 100 and d.get("secondsLeft", 0) > 0 for d in slow)
    assert any(re.search(r"the drives to be erased: \d+ %, \d of 5 drives erased", text) for text in seen.texts)
    assert any(re.search(rf"{LIAR.serial} .*Running, \d+ %, \d+s left", text) for text in seen.texts)


def test_the_evidence_is_about_these_drives(chain: Chain, run: Run, seen: Seen, say: Callable[[str], None]) -> None:
    """One record for each drive, with its serial number, world-wide name and size, and the method that was applied."""
    found = evidence(chain)

    run.write_json("evidence.json", found)
    records = {record["serialNumber"]: record for record in found["status"]["drives"]}
    assert len(records) == len(found["status"]["drives"]) == len(DRIVES)
    for drive in DRIVES:
        record = records[drive.serial]
        told = ", ".join(
            str(record.get(key)) for key in ("transport", "method", "class", "samplesRead", "message") if key in record
        )
        say(f"wipe: {drive.serial}: {told}")
        assert (record.get("wwn", ""), record["size"]) == (world_wide_name(drive), drive.size)
        assert record["class"] in ("Clear", "Purge")
        assert record["result"] == "Succeeded"
        assert record["samplesRead"] > 100
        assert not record.get("samplesDiffer")
        assert record["startedAt"] <= record["endedAt"]
    assert found["status"]["phase"] == "Succeeded"
    assert found["spec"]["policy"] == "Clear"
    assert (found["spec"]["systemUUID"], found["spec"]["claimUID"]) == (chain.machine.uuid, seen.claim)
    assert chain.server()["status"]["sanitizationEvidence"] == found["metadata"]["name"]


@pytest.mark.behaviour(
    "Cleanup", "A drive that confirms a discard and keeps the data is overwritten, and the evidence says so."
)
def test_a_drive_that_confirms_a_discard_and_keeps_the_data_is_overwritten(chain: Chain) -> None:
    """Reading back detects it, and the evidence records it; a drive that discards correctly is not overwritten."""
    records = {record["serialNumber"]: record for record in evidence(chain)["status"]["drives"]}

    assert records[LIAR.serial]["method"] == "Overwrite"
    assert re.search(r"Discard: \d+ of \d+ samples are not erased", records[LIAR.serial]["message"])
    assert records[VIRTIO.serial]["method"] == "Discard"


@pytest.mark.behaviour("Cleanup", "Changed evidence does not verify.")
def test_changed_evidence_does_not_verify(chain: Chain, run: Run) -> None:
    """The signature holds by the API's keys and by a key kept in a file; with one letter changed it does not, and with
    the letter put back it does again."""
    found = evidence(chain)
    name, drives = found["metadata"]["name"], found["status"]["drives"]
    keys = json.loads(chain.operator.kubectl("get", "configmap", "metal-evidence-key-public", "-n", "metal-system",
                                             "-o", "json"))["data"]  # fmt: skip
    (public,) = keys.values()
    kept = run.path("public-key.pem")
    kept.write_text(public)

    def put(serial: str) -> None:
        changed = [{**drives[0], "serialNumber": serial}, *drives[1:]]
        patch = json.dumps({"status": {"drives": changed}})
        chain.operator.kubectl(
            "patch", "sanitizationevidences", name, "--subresource=status", "--type=merge", "-p", patch
        )

    assert "1 signatures are valid" in chain.operator.metalctl("evidence", "verify")
    assert "1 signatures are valid" in chain.operator.metalctl("evidence", "verify", "--public-key", str(kept))
    put(drives[0]["serialNumber"][:-1] + "x")
    for options in ((), ("--public-key", str(kept))):
        with pytest.raises(RuntimeError, match="1 of 1 signatures are not valid"):
            chain.operator.metalctl("evidence", "verify", *options)
    put(drives[0]["serialNumber"])
    assert "1 signatures are valid" in chain.operator.metalctl("evidence", "verify")
