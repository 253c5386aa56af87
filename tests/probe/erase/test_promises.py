"""Properties of every erasure, for any drive and any failure."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from metal.probe.erase.methods import PURGE
from metal.probe.erase.plan import POLICIES
from tests.probe.erase.controllers import Ata, Nvme
from tests.probe.erase.machine import Faults, Machine

SIZE = 64 * 1024
FLAG = some.booleans()
FAULTS = some.builds(
    Faults,
    dies_at=some.none() | some.integers(0, SIZE),
    unreadable=some.sampled_from([False, False, False, True]),
    protected=some.sampled_from([False, False, False, True]),
    swallows=some.sampled_from([False, False, False, True]),
    opal=some.sampled_from([False, False, False, True]),
    keeps_discarded=FLAG,
    busy=some.sampled_from([0, 0, 3, 1000]),
)
NVME = some.fixed_dictionaries(
    {"sanitizes": some.integers(0, 7), "formats": FLAG, "crypto_format": FLAG, "lies": FLAG, "fails": FLAG,
     "never_ends": some.sampled_from([False, False, True]), "allocated": some.sampled_from([(), (1,), (1, 2)])}
)  # fmt: skip
ATA = some.fixed_dictionaries(
    {"sanitize": some.integers(0, 7).map(lambda bits: bits << 13), "security": some.sampled_from([0, 1, 0x21, 0x29, 7]),
     "lies": FLAG, "erase_fails": FLAG, "sanitize_frozen": FLAG}
)  # fmt: skip


@pytest.mark.behaviour(
    "Cleanup", "An erasure succeeds only with no data left and all samples read back, for any drive with any fault."
)
@settings(max_examples=150, deadline=None)
@given(
    policy=some.sampled_from(POLICIES),
    faults=FAULTS,
    discards=FLAG,
    drive=NVME.map(lambda told: (Nvme, told)) | ATA.map(lambda told: (Ata, told)),
)
def test_a_success_is_one(policy: str, faults: Faults, discards: bool, drive: tuple[type[Nvme | Ata], Any]) -> None:
    """No data of the tenant is left, the policy is met, and all samples are as promised; any failure has a
    message, and every drive a result."""
    kind, abilities = drive
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        if kind is Nvme:
            name = "nvme0n1"
            Nvme(machine, **abilities).add(name, SIZE)
        else:
            name = "sda"
            machine.add(name, SIZE, transport="ATA")
            Ata(machine, **abilities, sectors=(SIZE // 512, SIZE // 512))
        machine.faults[name] = faults
        machine.host.write(f"/sys/block/{name}/queue/discard_max_bytes", f"{discards:d}\n")
        told = machine.told(policy)
        left = b"tenant" in machine.medium(name).read_bytes()

    assert told["endedAt"] is not None
    if told["result"] == "Succeeded":
        assert not left
        assert told["class"] in (policy, PURGE)
        assert (told["samplesRead"], told["samplesDiffer"]) == (1, 0)
    else:
        assert told["result"] in ("Failed", "Locked", "ReadOnly")
        assert told["message"]
