"""Each invariant detects the history that violates it, and accepts a correct one."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from metal.api.boot_window import BootWindow
from metal.api.claim import (
    ServerBootConfiguration,
    ServerBootConfigurationSpec,
    ServerClaim,
    ServerClaimSpec,
    ServerClaimStatus,
)
from metal.api.common import LocalRef, ObjectRef, Taint
from metal.api.core import ConfigMap
from metal.api.interruption import OperationRequest
from metal.api.meta import Condition, ObjectMeta, OwnerReference
from metal.api.sanitization import (
    DriveErasure,
    SanitizationEvidence,
    SanitizationEvidenceSpec,
    SanitizationEvidenceStatus,
    Signature,
)
from metal.api.server import Failure, PowerRequest, Server, ServerSpec, ServerStatus, Wait
from metal.api.tenancy import ClaimBoot, Tenancy, TenantRef
from metal.sim.history import History
from metal.sim.invariants import (
    InvariantViolation,
    check_all,
    check_attempts,
    check_available_is_off,
    check_bounded,
    check_discovered,
    check_disks_are_clean,
    check_eligible,
    check_kept,
    check_one_claim,
    check_one_machine,
    check_one_network_boot,
    check_power_after_configuration,
    check_ready,
    check_sanitized,
    check_secrets,
    check_strangers,
    check_untouched,
    check_waits,
)

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


def claimed_twice(story: Story) -> None:
    story.server("Reserved", CLAIM).server("Reserved", OTHER)


def tenant_follows_tenant(story: Story) -> None:
    story.server("Reserved", CLAIM, tenant="u1").server("Reserved", CLAIM, tenant="u2")


def claim_holds_two(story: Story) -> None:
    story.server("Reserved", CLAIM, name="s1").server("Reserved", CLAIM, name="s2", uuid="other")


def cordoned_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"unclaimable": True}).server("Available", CLAIM)


def tainted_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"taints": (Taint(key="k", effect="NoBind"),)}).server("Available", CLAIM)


def maintained_and_taken(story: Story) -> None:
    story.claim().server("Available", spec={"server_maintenance_ref": OTHER}).server("Available", CLAIM)


def on_and_taken(story: Story) -> None:
    story.claim().server("Available", power_state="On").server("Available", CLAIM)


def undiscovered_and_taken(story: Story) -> None:
    story.claim().server("Discovery").server("Discovery", CLAIM)


def taken_away(story: Story) -> None:
    story.claim(bound="s1").server("Reserved", CLAIM, tenant="u1").server("Available").later().claim(going=True)


def handed_to_another(story: Story) -> None:
    story.claim(bound="s1").server("Reserved", CLAIM, tenant="u1").server("Reserved", OTHER, tenant="u1")


def ready_before_its_boot(story: Story) -> None:
    story.claim(bound="s1", ready=True).later().server("Reserved", CLAIM, claim_boot=BOOTED)


def another_machine_under_its_name(story: Story) -> None:
    story.server("Available").server("Available", uuid="other")


def enrolled_twice(story: Story) -> None:
    story.server("Available", owned=True).server("Initial", name="s2", owned=True)


def enrolled_twice_with_reversed_bytes(story: Story) -> None:
    story.machine("power", state="Off").server("Available", owned=True)
    story.server("Initial", name="s2", uuid=REVERSED, owned=True)


def booted_by_two_servers(story: Story) -> None:
    story.server("Discovery", boot_window=window()).server("Discovery", name="s2", boot_window=window())


def two_tenants_on_one_machine(story: Story) -> None:
    reserved(story).claim("c2", uid="u2").server("Reserved", OTHER, name="s2", tenant="u2")


def another_machine_than_its_mainboards(story: Story) -> None:
    story.server("Available").machine("mainboard", becomes=BOARD)
    story.server("Available", uuid="99999999-2222-3333-4444-555555555556")


def available_by_an_old_report(story: Story) -> None:
    story.server("Discovery").machine("power", state="On").machine("report", status=201).machine("power", state="Off")
    story.machine("power", state="On").machine("power", state="Off").server("Available")


def served_to_a_stranger(story: Story) -> None:
    story.machine("fetch", path="/ignition/99999999-2222-3333-4444-555555555599", status=200)


def on_for_a_claim_that_has_another(story: Story) -> None:
    story.claim(bound="s2").server("Reserved", CLAIM, tenant="u1").later().machine("reset", type="On", power="Off")


def off_under_a_claim(story: Story) -> None:
    reserved(story).later().machine("reset", type="ForceOff", power="On")


def button_under_a_claim(story: Story) -> None:
    reserved(story).later().machine("reset", type="PushPowerButton", power="On")


def on_against_the_claim(story: Story) -> None:
    story.claim(power="Off").server("Reserved", CLAIM, tenant="u1")
    story.later().machine("reset", type="On", power="Off")


def on_in_cleanup(story: Story) -> None:
    story.claim(going=True).server("Cleanup", CLAIM, tenant="u1")
    story.later().machine("reset", type="On", power="Off")


def probe_under_a_claim(story: Story) -> None:
    reserved(story).machine("os", kind="probe", source="network")


def imaged_for_another(story: Story) -> None:
    reserved(story, boot_window=window("u9")).machine("os", kind="tenant", source="network")


def imaged_twice(story: Story) -> None:
    reserved(story, boot_window=window())
    story.machine("os", kind="tenant", source="network").machine("os", kind="tenant", source="network")


def imaged_again_unasked(story: Story) -> None:
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED, boot_window=window("u1", 1))
    story.machine("os", kind="tenant", source="network")


def imaged_for_a_former_request(story: Story) -> None:
    asked_again(story).machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED, boot_window=window())
    story.machine("os", kind="tenant", source="network")


def ready_before_the_boot_that_was_asked_for(story: Story) -> None:
    reserved(story).later().claim(boot_generation=1, ready=True)


def asked_again(story: Story) -> Story:
    """A tenant's system was booted from the network; its claim requests another boot, which is in progress."""
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network").claim(boot_generation=1)
    asked = msgspec.structs.replace(BOOTED, requested_generation=1)
    story.later().server("Reserved", CLAIM, tenant="u1", claim_boot=asked, boot_window=window())
    story.machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off")
    return story.server("Reserved", CLAIM, tenant="u1", claim_boot=asked, boot_window=window("u1", 1))


def available_while_on(story: Story) -> None:
    story.server("Discovery").machine("power", state="On").server("Available")


def available_while_going_off(story: Story) -> None:
    story.server("Discovery").machine("power", state="PoweringOff").server("Available")


def available_without_cleanup(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Available", sanitization="None")


def available_without_evidence(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM).server("Available")


def evidence_of_the_tenant_before(story: Story) -> None:
    story.server("Cleanup", sanitization="None").server("Available", sanitization="None")
    reserved(story).machine("os", kind="disk", source="disk").server("Available", sanitization="None")


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


def evidence_that_is_not_there(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    available(story.machine("disk", first=True))


def evidence_of_a_failure(story: Story) -> None:
    available(erased(story, phase="Failed", owed=("a drive",)).machine("disk", first=True))


def evidence_with_a_drive_that_was_not_erased(story: Story) -> None:
    available(erased(story, drives=(DriveErasure(result="Missing"),)).machine("disk", first=True))


def evidence_that_nobody_signed(story: Story) -> None:
    available(erased(story, signed=False).machine("disk", first=True))


def evidence_of_another_server(story: Story) -> None:
    available(erased(story, server="s2").machine("disk", first=True))


def evidence_and_a_full_disk(story: Story) -> None:
    available(erased(story))


def nothing_owed_and_a_full_disk(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    story.server("Available", sanitization="NotOwed")


def deleted_before_its_erasure(story: Story) -> None:
    reserved(story).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM, tenant="u1")
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")


def erased_under_a_claim(story: Story) -> None:
    reserved(story).machine("os", kind="sanitizer", source="network")


def nameless_wait(story: Story) -> None:
    story.server("Discovery", wait=Wait(until=NOW))


def endless_wait(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW), waiting_for="the report")


def words_without_a_wait(story: Story) -> None:
    story.server("Discovery", waiting_for="something")


def wait_without_a_way_out(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW, until=NOW + timedelta(minutes=1)))
    story.now += timedelta(hours=1)
    story.machine("power", state="On")


def wait_that_ended_late(story: Story) -> None:
    story.server("Discovery", wait=Wait(for_="ProbeReport", since=NOW, until=NOW + timedelta(minutes=1)))
    story.now += timedelta(hours=1)
    story.server("Error")


def on_before_the_configuration(story: Story) -> None:
    story.config("Pending").server("Discovery", config=CLAIM).machine("reset", type="On", power="Off")


def on_before_the_claims_configuration(story: Story) -> None:
    story.claim().config("Error").server("Reserved", CLAIM, tenant="u1").machine("reset", type="ForceOn", power="Off")


def on_without_a_configuration(story: Story) -> None:
    story.server("Discovery").machine("reset", type="PowerCycle", power="On")


VIOLATIONS: list[tuple[Callable[[History], None], Callable[[Story], None]]] = [
    (check_one_claim, claimed_twice),
    (check_one_claim, tenant_follows_tenant),
    (check_one_claim, claim_holds_two),
    (check_eligible, cordoned_and_taken),
    (check_eligible, tainted_and_taken),
    (check_eligible, maintained_and_taken),
    (check_eligible, on_and_taken),
    (check_eligible, undiscovered_and_taken),
    (check_kept, taken_away),
    (check_kept, handed_to_another),
    (check_ready, ready_before_its_boot),
    (check_one_machine, another_machine_under_its_name),
    (check_one_machine, enrolled_twice),
    (check_one_machine, enrolled_twice_with_reversed_bytes),
    (check_one_machine, booted_by_two_servers),
    (check_one_machine, two_tenants_on_one_machine),
    (check_one_machine, another_machine_than_its_mainboards),
    (check_discovered, available_by_an_old_report),
    (check_strangers, served_to_a_stranger),
    (check_untouched, on_for_a_claim_that_has_another),
    (check_untouched, off_under_a_claim),
    (check_untouched, button_under_a_claim),
    (check_untouched, on_against_the_claim),
    (check_untouched, on_in_cleanup),
    (check_untouched, probe_under_a_claim),
    (check_untouched, imaged_for_another),
    (check_one_network_boot, imaged_twice),
    (check_one_network_boot, imaged_again_unasked),
    (check_one_network_boot, imaged_for_a_former_request),
    (check_ready, ready_before_the_boot_that_was_asked_for),
    (check_available_is_off, available_while_on),
    (check_available_is_off, available_while_going_off),
    (check_sanitized, available_without_cleanup),
    (check_sanitized, available_without_evidence),
    (check_sanitized, evidence_of_the_tenant_before),
    (check_sanitized, evidence_that_is_not_there),
    (check_sanitized, evidence_of_a_failure),
    (check_sanitized, evidence_with_a_drive_that_was_not_erased),
    (check_sanitized, evidence_that_nobody_signed),
    (check_sanitized, evidence_of_another_server),
    (check_disks_are_clean, evidence_and_a_full_disk),
    (check_disks_are_clean, nothing_owed_and_a_full_disk),
    (check_sanitized, deleted_before_its_erasure),
    (check_disks_are_clean, deleted_before_its_erasure),
    (check_untouched, erased_under_a_claim),
    (check_waits, nameless_wait),
    (check_waits, endless_wait),
    (check_waits, words_without_a_wait),
    (check_waits, wait_without_a_way_out),
    (check_waits, wait_that_ended_late),
    (check_power_after_configuration, on_before_the_configuration),
    (check_power_after_configuration, on_before_the_claims_configuration),
    (check_power_after_configuration, on_without_a_configuration),
]


@pytest.mark.parametrize(("check", "tell"), VIOLATIONS, ids=[tell.__name__ for _, tell in VIOLATIONS])
def test_a_violation_is_found(check: Callable[[History], None], tell: Callable[[Story], None]) -> None:
    """The responsible check raises, with a message and the preceding entries; so does check_all."""
    story = Story()
    tell(story)
    with pytest.raises(InvariantViolation, match="preceding entries:\n  "):
        check(story.history)
    with pytest.raises(InvariantViolation):
        check_all(story.history)


def test_an_honest_life_passes() -> None:
    """Discovery, a claim with its boot, power off and on, Cleanup and a second claim violate nothing."""
    story = Story()
    story.config("Ready", "probe").server("Discovery", config=ObjectRef(namespace="default", name="probe"))
    story.machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="probe", source="network").machine("report", status=201)
    story.machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off").server("Available")
    story.claim().config("Ready").server("Reserved", CLAIM, tenant="u1", boot_window=window())
    story.machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="tenant", source="network").server("Reserved", CLAIM, tenant="u1", claim_boot=BOOTED)
    story.claim(power="Off").machine("reset", type="GracefulShutdown", power="On").machine("power", state="Off")
    story.claim(power="On").machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="disk", source="disk").claim(going=True)
    story.server("Cleanup", CLAIM, tenant="u1").machine("reset", type="ForceOff", power="On")
    story.machine("power", state="Off").server("Available", sanitization="None")
    story.claim("c2", uid="u2").config("Ready", "c2").server("Reserved", OTHER, tenant="u2", boot_window=window("u2"))
    story.machine("reset", type="On", power="Off").machine("os", kind="tenant", source="network")
    check_all(story.history, {"never-said"})


def test_servers_of_one_machine_of_which_one_acts_pass() -> None:
    """One was applied by hand, with reversed bytes; after a new mainboard the Server has another UUID."""
    story = Story()
    reserved(story, boot_window=window()).machine("power", state="On")
    story.server("Initial", name="s2", uuid=REVERSED).server("", name="s3", owned=True)
    story.machine("power", state="Off").machine("mainboard", becomes=BOARD)
    check_all(reserved(story, uuid=BOARD).history)


def test_a_boot_that_the_claim_asked_for_passes() -> None:
    """Power off although the claim requests On, a second network boot, and Ready after it was recorded."""
    story = asked_again(Story()).machine("reset", type="On", power="Off").machine("power", state="On")
    story.machine("os", kind="tenant", source="network")
    story.server("Reserved", CLAIM, tenant="u1", claim_boot=msgspec.structs.replace(BOOTED, boot_generation=1))
    check_all(story.claim(boot_generation=1, ready=True).history)


def test_power_for_a_boot_that_was_asked_for_needs_its_configuration() -> None:
    """As for the first boot."""
    story = asked_again(Story()).config("Pending").later().machine("reset", type="On", power="Off")
    with pytest.raises(InvariantViolation, match="before its boot configuration was Ready"):
        check_power_after_configuration(story.history)


def test_an_erasure_with_evidence_passes() -> None:
    """The machine is powered on in Cleanup for it; an accepted sanitization failure is no violation."""
    story = Story().config("Ready")
    boot = msgspec.structs.replace(window(""), purpose="Sanitization")
    erased(story).claim(going=True).server("Cleanup", CLAIM, tenant="u1", boot_window=boot).later()
    story.machine("reset", type="On", power="Off").machine("os", kind="sanitizer", source="network")
    available(story.machine("disk", first=True))
    reserved(story, boot_window=window()).machine("os", kind="tenant", source="network").server("Cleanup", CLAIM)
    story.server("Available", sanitization="Accepted")
    check_all(story.history)


def test_a_server_that_is_deleted_once_it_is_erased_passes() -> None:
    """Nothing remains to be erased, also for the next Server of its machine."""
    story = erased(Story().config("Ready")).machine("disk", first=True)
    story.server("Released", CLAIM, tenant="u1", sanitization="Clear", sanitization_evidence="e1")
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")
    check_sanitized(story.history)
    check_disks_are_clean(story.history)


@pytest.mark.parametrize("said", [{"sanitization": "Accepted"}, {"sanitization_policy": "None"}])
def test_a_server_whose_data_was_left_on_purpose_may_be_deleted(said: dict[str, Any]) -> None:
    """The decision holds for the next Server of the machine as well."""
    story = reserved(Story().config("Ready")).machine("os", kind="tenant", source="network")
    story.server("Released", CLAIM, tenant="u1", **said)
    story.history.changed("Server", "", "s1", None)
    story.server("Discovery").server("Available")
    check_sanitized(story.history)
    check_disks_are_clean(story.history)


def test_a_request_of_a_former_leader_that_arrives_late_gives_a_claim_no_second_server() -> None:
    """The claim names the server that it has; the other one is released without a change."""
    story = Story()
    story.server("Available", CLAIM, name="s2", uuid="other").claim(bound="s2").server("Available", CLAIM)
    story.server("Reserved", CLAIM).server("Cleanup", CLAIM).server("Available")
    check_all(story.history)


def test_a_report_that_was_kept_although_its_machine_was_told_otherwise_counts() -> None:
    """The API's response was lost, so the operator could not know."""
    story = Story().server("Discovery").machine("power", state="On").machine("report", status=503)
    check_discovered(story.machine("power", state="Off").server("Available").history)


def test_a_deletion_that_is_seen_a_moment_late_takes_no_server_away() -> None:
    """Servers and claims are watched apart; a new claim of the same name does not hold the old one's server."""
    story = Story().claim(bound="s1").server("Cleanup", CLAIM, tenant="u1").server("Available").claim(going=True)
    story.claim(uid="u2", bound="s1").server("Cleanup", CLAIM, tenant="u1").server("Available")
    check_all(story.history)


def test_a_maintenance_may_do_what_it_likes() -> None:
    """While a maintenance holds the server, its resets are no violation."""
    story = reserved(Story())
    held = story.history
    server = [entry for entry in held if getattr(entry, "kind", "") == "Server"][-1]
    spec = msgspec.structs.replace(server.obj.spec, server_maintenance_ref=CLAIM)  # type: ignore[union-attr]  # a Change
    held.changed("Server", "", "s1", msgspec.structs.replace(server.obj, spec=spec))  # type: ignore[union-attr]  # likewise
    story.machine("reset", type="ForceOff", power="On")
    check_untouched(held)


@pytest.mark.parametrize(
    "told",
    [
        {"operation_request": OperationRequest(operation="force-off-server", asked_at=NOW)},
        {"power_request": PowerRequest(target="Off", reason="parking")},
        {"state": "Maintenance"},
    ],
)
def test_what_somebody_asked_for_is_nobodys_concern(told: dict[str, Any]) -> None:
    """A reset by annotation, parking, and the end of a maintenance may power off a tenant's machine."""
    story = reserved(Story())
    server = [entry for entry in story.history if getattr(entry, "kind", "") == "Server"][-1].obj  # type: ignore[union-attr]  # a Change
    status = msgspec.structs.replace(server.status, **told)
    story.history.changed("Server", "", "s1", msgspec.structs.replace(server, status=status))
    story.machine("reset", type="ForceOff", power="On")
    check_untouched(story.history)
    story.history.changed("Server", "", "s1", server)
    with pytest.raises(InvariantViolation):
        check_untouched(story.later().machine("reset", type="ForceOff", power="On").history)


def test_a_pass_under_way_may_still_act() -> None:
    """A claim that was changed a moment ago may see the power action of the reconcile that read it before."""
    story = reserved(Story()).claim(power="Off").claim(going=True)
    story.machine("reset", type="On", power="Off")
    check_untouched(story.history)
    story.config("Pending").server("Reserved", CLAIM, tenant="u1").machine("reset", type="On", power="Off")
    check_power_after_configuration(story.history)
    with pytest.raises(InvariantViolation):
        check_untouched(story.later().machine("reset", type="On", power="Off").history)


def test_a_liar_is_not_judged_by_its_power() -> None:
    """Machines whose BMC reports a false power state are listed by the test, and excluded."""
    story = Story()
    available_while_on(story)
    check_available_is_off(story.history, false_power_states=frozenset({UUID}))


def test_a_server_that_failed_while_it_was_available_may_go_on_before_it_is_off() -> None:
    """Its machine was on meanwhile, and is being powered off; it cannot be claimed until then."""
    story = Story()
    failure = Failure(state="Available", reason="PowerOffTimeout")
    story.server("Error", failure=failure).machine("power", state="On").server("Available", power_state="On")
    check_available_is_off(story.history)
    story.server("Error", failure=msgspec.structs.replace(failure, state="Cleanup")).server("Available")
    with pytest.raises(InvariantViolation, match="while its power was On"):
        check_available_is_off(story.history)


@pytest.mark.parametrize("held", [True, False])
def test_a_disk_that_boots_is_a_tenants_while_a_claim_has_the_server(held: bool) -> None:
    """A system left by a maintenance, or by a tenant with the policy None, does not make a free machine dirty."""
    story = Story()
    story.server("Reserved" if held else "Discovery", CLAIM if held else None, boot_window=window())
    story.machine("os", kind="disk", source="disk").server("Available")
    if held:
        with pytest.raises(InvariantViolation, match="without a Cleanup"):
            check_sanitized(story.history)
    else:
        check_sanitized(story.history)


def test_what_somebody_decided_to_leave_is_not_asked_for_again() -> None:
    """The policy was None; the recreated Server has no record of it."""
    story = reserved(Story(), boot_window=window()).machine("os", kind="tenant", source="network")
    story.server("Cleanup", CLAIM).server("Available", sanitization="None")
    story.history.changed("Server", "", "s1", None)
    check_disks_are_clean(story.server("Discovery").server("Available").history)


def test_a_maintenances_system_is_no_tenant_although_its_server_is_gone() -> None:
    """The Server was deleted while the machine booted for the maintenance."""
    boot = msgspec.structs.replace(window(""), purpose="Maintenance")
    story = Story().server("Maintenance", boot_window=boot)
    story.history.changed("Server", "", "s1", None)
    story.machine("os", kind="tenant", source="network").server("Discovery").server("Available")
    check_sanitized(story.history)


@pytest.mark.parametrize("form", ["hunter2-hunter2", "aHVudGVyMi1odW50ZXIy"])
def test_a_secret_in_an_object_is_found(form: str) -> None:
    """A password in a ConfigMap is found, plain and in base64, and the message does not repeat it."""
    story = Story()
    story.history.changed("ConfigMap", "x", "cm", ConfigMap(metadata=ObjectMeta(name="cm"), data={"a": f"b{form}c"}))
    with pytest.raises(InvariantViolation, match="ConfigMap x/cm") as caught:
        check_secrets(story.history, {"hunter2-hunter2"})
    assert form not in str(caught.value)


def test_a_secret_in_the_history_is_found() -> None:
    """The history itself must not contain a token either."""
    story = Story().machine("fetch", path="/ipxe?token=abcdefgh")
    with pytest.raises(InvariantViolation, match="history of machine"):
        check_secrets(story.history, {"abcdefgh"})


def test_secrets_may_live_in_secrets() -> None:
    """Secrets may contain them, and short texts match by chance."""
    story = Story()
    story.history.changed("BMCSecret", "", "s", {"data": {"password": "hunter2-hunter2"}})
    story.machine("power", state="On")
    check_secrets(story.history, {"hunter2-hunter2", "On"})


@pytest.mark.parametrize(("pause", "loops"), [(0.5, True), (1.0, False)])
def test_a_server_that_is_written_in_a_loop_is_detected(pause: float, loops: bool) -> None:
    """Two versions of its status a second are a loop, one a second is not."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for number in range(200):
        status = ServerStatus(waiting_for=str(number))
        history.changed("Server", "", "s1", Server(metadata=ObjectMeta(name="s1"), status=status))
        now[0] += timedelta(seconds=pause)
    if not loops:
        check_bounded(history)
        return
    with pytest.raises(InvariantViolation, match="s1 had 91 versions within a minute"):
        check_bounded(history)


def test_a_machine_that_is_reset_in_a_loop_is_detected() -> None:
    """A reset each second."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for _ in range(60):
        history.happened("u1", "reset", type="On")
        now[0] += timedelta(seconds=1)
    with pytest.raises(InvariantViolation, match="u1 had 31 resets within a minute"):
        check_bounded(history)


@pytest.mark.parametrize(("pause", "loops"), [(59.0, True), (61.0, False)])
def test_a_request_that_is_rejected_in_a_loop_is_detected(pause: float, loops: bool) -> None:
    """Sixty of one kind in an hour are pauses that grow, more are none; another kind counts for itself."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    history = History(lambda: now[0])
    for _ in range(200):
        history.happened("u1", "rejected", request="POST /reset", status=500)
        history.happened("u1", "rejected", request="PATCH /system", status=500)
        now[0] += timedelta(seconds=pause)
    if not loops:
        check_bounded(history)
        return
    with pytest.raises(InvariantViolation, match="u1 had 61 rejected requests within an hour"):
        check_bounded(history)


def _attempts(failure: Failure, *, now: int, annotated: bool) -> History:
    """A server leaves Error, and counts this many network boots of two."""
    story = Story().server("Error", failure=failure, boot_attempts=2)
    if annotated:
        meta = ObjectMeta(name="s1", annotations={"metal.ironcore.dev/operation": "retry"})
        status = ServerStatus(state="Error", failure=failure, boot_attempts=2)
        spec = ServerSpec(system_uuid=UUID)
        story.history.changed("Server", "", "s1", Server(metadata=meta, spec=spec, status=status))
    return story.server("Reserved", boot_attempts=now).history


def test_an_outage_that_resets_the_count_of_boots_is_detected() -> None:
    """A failure of the BMC that ends by itself keeps status.bootAttempts."""
    outage = Failure(state="Reserved", reason="BMCTimeout")
    with pytest.raises(InvariantViolation, match="counts 0 network boots after an outage, before 2"):
        check_attempts(_attempts(outage, now=0, annotated=False))


@pytest.mark.parametrize(
    ("failure", "now", "annotated"),
    [
        (Failure(state="Reserved", reason="BMCTimeout"), 2, False),
        (Failure(state="Reserved", reason="BMCTimeout"), 0, True),
        (Failure(state="Reserved", reason="NetworkBootFailed"), 0, False),
    ],
    ids=["kept", "retry", "another failure"],
)
def test_a_count_that_may_begin_again_is_no_violation(failure: Failure, now: int, annotated: bool) -> None:
    """The count was kept, operation=retry was requested, or the failure was not one of the BMC."""
    check_attempts(_attempts(failure, now=now, annotated=annotated))
