"""The invariants over machines and drives detect each history that violates them, and accept a correct one."""

from datetime import UTC, datetime, timedelta

import pytest

from metal.api.claim import ServerClaim, ServerClaimSpec
from metal.api.common import LocalRef, ObjectRef
from metal.api.meta import ObjectMeta
from metal.api.sanitization import SanitizationEvidence, SanitizationEvidenceSpec, SanitizationEvidenceStatus
from metal.api.server import Server, ServerSpec
from metal.controllers.server.tenancy import owed_drives
from metal.sim.history import History
from metal.sim.invariants import InvariantViolation, check_physical
from tests.sim.plane import KINDS

M1, M2 = "11121314-2223-3334-4444-555555555555", "99999999-2222-3333-4444-555555555555"
NEW = "77777777-2222-3333-4444-555555555555"


class Story:
    """Writes a history with one entry every two minutes, more than a reconcile takes."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.history = History(lambda: self.now)

    def claim(self, name: str = "c1", power: str = "On", *, gone: bool = False, generation: int = 0) -> "Story":
        self.now += timedelta(minutes=2)
        meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
        spec = ServerClaimSpec(power=power, boot_generation=generation, ignition_secret_ref=LocalRef(name=name))
        self.history.changed("ServerClaim", "default", name, None if gone else ServerClaim(metadata=meta, spec=spec))
        return self

    def machine(self, what: str, machine: str = M1, **details: object) -> "Story":
        self.now += timedelta(minutes=2)
        self.history.happened(machine, what, **details)
        return self

    def boots(self, host: str = "c1", machine: str = M1, drive: str = "d1") -> "Story":
        return self.machine("os", machine, kind="tenant", source="network", hostname=host, drives=[drive])

    def runs(self, kind: str, machine: str = M1) -> "Story":
        return self.machine("os", machine, kind=kind, source="network", drives=["d1"])

    def reset(self, machine: str = M1) -> "Story":
        return self.machine("reset", machine, type="GracefulShutdown", power="On")

    def switches_on(self, machine: str = M1) -> "Story":
        return self.machine("reset", machine, type="On", power="Off")

    def erases(self, drive: str = "d1", machine: str = M1) -> "Story":
        return self.machine("disk", machine, serial=drive, erased="Clear", first=True)

    def operates(self, word: str, machine: str = M1) -> "Story":
        return self.server(ServerSpec(system_uuid=machine), {KINDS.key("operation"): word})

    def maintains(self, machine: str = M1) -> "Story":
        return self.server(
            ServerSpec(system_uuid=machine, server_maintenance_ref=ObjectRef(name="m1", namespace="default"))
        )

    def server(self, spec: ServerSpec, annotations: dict[str, str] | None = None) -> "Story":
        meta = ObjectMeta(name="s1", annotations=annotations or {})
        self.history.changed("Server", "", "s1", Server(metadata=meta, spec=spec))
        return self

    def record_deleted(self, phase: str = "") -> "Story":
        spec = SanitizationEvidenceSpec(claim_uid="uid-c1", system_uuid=M1)
        record = SanitizationEvidence(
            metadata=ObjectMeta(name="e"), spec=spec, status=SanitizationEvidenceStatus(phase=phase)
        )
        for obj in (record, None):
            self.history.changed("SanitizationEvidence", "", "e", obj)
        return self


def tenant() -> Story:
    """The system of claim c1 runs on the first machine, and a second claim exists."""
    return Story().claim().claim("c2").boots()


def parked() -> Story:
    """The same, and the claim has switched its machine off."""
    return tenant().claim(power="Off").reset().machine("power", state="Off")


GOOD = {
    "powered off for its claim": tenant().claim(power="Off").reset(),
    "booted again for its claim": tenant().claim(generation=1).reset().boots(),
    "erased for the next tenant": tenant().claim(gone=True).reset().erases().boots("c2"),
    "off after the claim": tenant().claim(gone=True).reset(),
    "on again for its claim": parked().claim().switches_on(),
    "its first boot repeated": parked().claim(power="Off", generation=1).switches_on().boots(),
    "on for a maintenance": parked().maintains().switches_on().runs("probe"),
    "erased after the claim": parked().claim(gone=True).switches_on().runs("sanitizer").runs("probe"),
    "another machine is discovered": parked().switches_on(M2).runs("probe", M2),
    "another machine": tenant().boots("c2", M2, "d2").reset(NEW),
    "accepted while it runs": tenant().operates(owed_drives.ACCEPT).reset(),
    "accepted by an administrator": tenant().claim(gone=True).operates(owed_drives.ACCEPT).boots("c2"),
    "the record of its data is deleted": tenant().record_deleted().reset(),
    "new mainboard and other drives": tenant().machine("drives", serials=["d9"]).machine("mainboard", becomes=NEW)
    .boots("c2", NEW, "d9"),
}  # fmt: skip
BAD = {
    "start.* on a machine of claim c1, which exists": tenant().erases("d2").boots("c2", drive="d2"),
    "drive d1 has data of claim c1, which is deleted": tenant().claim(gone=True).boots("c2"),
    "drive d1 has data of claim c1, which exists": tenant().machine("drives", M2, serials=["d1"]).boots("c2", M2),
    "GracefulShutdown reached a machine that runs the system of claim c1": tenant().reset(),
    "GracefulShutdown reached .* c1": tenant().machine("mainboard", becomes=NEW)
    .machine("os", NEW, kind="disk", source="disk", drives=["d1"]).reset(NEW),
    "On reached a machine of claim c1, which requested it to be off": parked().switches_on(),
    "a probe was booted on a machine of claim c1": parked().runs("probe"),
    "a sanitizer was booted on a machine of claim c1": parked().claim().switches_on().runs("sanitizer"),
    "GracefulShutdown reached a machine .* of claim c1": tenant().record_deleted("Failed").reset(),
    "drive d1 with data of claim c1, which exists, was erased": tenant().erases(machine=M2),
}  # fmt: skip


@pytest.mark.parametrize("story", GOOD.values(), ids=GOOD)
def test_a_correct_history_is_accepted(story: Story) -> None:
    """A machine follows its claim, is erased after it, and is free when nothing identifies it any more."""
    check_physical(story.history)


@pytest.mark.parametrize(("text", "story"), BAD.items(), ids=BAD)
def test_a_violation_is_detected(text: str, story: Story) -> None:
    """The exception says which claim lost its machine, its data or its power."""
    with pytest.raises(InvariantViolation, match=text):
        check_physical(story.history)
