"""A history, written entry by entry as a story tells it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow
from metal.api.claim import (
    ServerBootConfiguration,
    ServerBootConfigurationSpec,
    ServerClaim,
    ServerClaimSpec,
    ServerClaimStatus,
)
from metal.api.common import LocalRef, ObjectRef
from metal.api.meta import Condition, ObjectMeta, OwnerReference
from metal.api.sanitization import (
    DriveErasure,
    SanitizationEvidence,
    SanitizationEvidenceSpec,
    SanitizationEvidenceStatus,
    Signature,
)
from metal.api.server import Server, ServerSpec, ServerStatus
from metal.api.tenancy import ClaimBoot, Tenancy, TenantRef
from metal.sim.history import History

UUID = "11121314-2223-3334-4444-555555555555"
REVERSED = "14131211-2322-3433-4444-555555555555"
BOARD = "99999999-2222-3333-4444-555555555555"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = ObjectRef(namespace="default", name="c1")
OTHER = ObjectRef(namespace="default", name="c2")
BOOTED = ClaimBoot(claim_uid="u1", image="os", booted_at=NOW)


def _tenancy(status: dict[str, Any]) -> Tenancy:
    """The record of tenancy from the words of a story, which are taken out of `status`."""
    uid, boot = status.pop("tenant", ""), status.pop("claim_boot", None)
    return Tenancy(
        claim_ref=TenantRef(uid=uid) if uid else None, boot=boot, data="Dirty" if boot else "Clean",
        sanitization=status.pop("sanitization", ""), policy=status.pop("sanitization_policy", ""),
    )  # fmt: skip


class Story:
    """Writes a history with one entry a second."""

    def __init__(self) -> None:
        self.now = NOW
        self.history = History(lambda: self.now)

    def machine(self, what: str, **details: Any) -> "Story":
        self.now += timedelta(seconds=1)
        self.history.happened(UUID, what, **details)
        return self

    def later(self) -> "Story":
        """Let more time pass than a reconcile takes."""
        self.now += timedelta(minutes=2)
        return self

    def server(
        self, state: str, claim: ObjectRef | None = None, *, name: str = "s1", uuid: str = UUID,
        config: ObjectRef | None = None, spec: dict[str, Any] | None = None, owned: bool = False, **status: Any,
    ) -> "Story":  # fmt: skip
        self.now += timedelta(seconds=1)
        made = ServerSpec(
            system_uuid=uuid, server_claim_ref=claim, boot_configuration_ref=config or claim, **(spec or {})
        )
        status = {"power_state": "Off", **status}
        status["tenancy"] = _tenancy(status)
        owners = (OwnerReference(api_version="v", kind="BMC", name="b", uid="b", controller=True),) if owned else ()
        obj = Server(
            metadata=ObjectMeta(name=name, owner_references=owners),
            spec=made,
            status=ServerStatus(state=state, **status),
        )
        self.history.changed("Server", "", name, obj)
        return self

    def claim(
        self, name: str = "c1", power: str = "On", uid: str = "u1", *, going: bool = False, bound: str = "",
        ready: bool = False, boot_generation: int = 0,
    ) -> "Story":  # fmt: skip
        meta = ObjectMeta(name=name, namespace="default", uid=uid, deletion_timestamp=NOW if going else None)
        ref = LocalRef(name=bound) if bound else None
        spec = ServerClaimSpec(power=power, server_ref=ref, boot_generation=boot_generation)
        obj = ServerClaim(metadata=meta, spec=spec)
        if ready:
            now_ready = (Condition(type="Ready", status="True"),)
            obj = msgspec.structs.replace(obj, status=ServerClaimStatus(conditions=now_ready))
        self.history.changed("ServerClaim", "default", name, obj)
        return self

    def config(self, state: str, name: str = "c1") -> "Story":
        spec = ServerBootConfigurationSpec(server_ref=LocalRef(name="s1"))
        obj = ServerBootConfiguration(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
        obj = msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, state=state))
        self.history.changed("ServerBootConfiguration", "default", name, obj)
        return self


def window(claim_uid: str = "u1", boot_generation: int = 0) -> BootWindow:
    return BootWindow(
        id="w", purpose="Claim", config_ref=CLAIM, claim_uid=claim_uid, opened_at=NOW,
        expires_at=NOW + timedelta(hours=1), boot_generation=boot_generation,
    )  # fmt: skip


def reserved(story: Story, **status: Any) -> Story:
    """A server whose claim has booted."""
    return story.claim().config("Ready").server("Reserved", CLAIM, **{"tenant": "u1", "claim_boot": BOOTED, **status})


def asked_again(story: Story) -> Story:
    """A tenant's system was booted from the network; its claim requests another boot, which is in progress."""
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network").claim(boot_generation=1)
    asked = msgspec.structs.replace(BOOTED, requested_generation=1)
    story.later().server("Reserved", CLAIM, tenant="u1", claim_boot=asked, boot_window=window())
    story.machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off")
    return story.server("Reserved", CLAIM, tenant="u1", claim_boot=asked, boot_window=window("u1", 1))


def erased(story: Story, *, server: str = "s1", signed: bool = True, **status: Any) -> Story:
    """A tenant's system, a Cleanup, and evidence of it."""
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM, tenant="u1")
    signature = Signature(value="x") if signed else None
    said = {"phase": "Succeeded", "drives": (DriveErasure(result="Succeeded"),), "signature": signature, **status}
    obj = SanitizationEvidence(
        metadata=ObjectMeta(name="e1"),
        spec=SanitizationEvidenceSpec(server_ref=LocalRef(name=server), system_uuid=UUID),
        status=SanitizationEvidenceStatus(**said),
    )
    story.history.changed("SanitizationEvidence", "", "e1", obj)
    return story


def available(story: Story) -> Story:
    return story.server("Available", sanitization="Clear", sanitization_evidence="e1")
