"""The result of an erasure: the report is judged, the verdict is signed and written, and the server continues or waits.

`conclude` reads from the BMC, once, the volumes that contain drives which no report names, and switches the machine
off; `metal.evidence.verdict` judges. When everything was erased, `status.tenancy` has data Clean and the result.
Otherwise the server goes to Error with `SanitizationOwed` and stays there until the drives are erased, or an
administrator accepts it with operation=accept-owed-sanitization (`accept`), which the evidence keeps.
"""

from dataclasses import replace

from metal.api.names import OPERATION
from metal.api.sanitization import EvidencePhase, SanitizationEvidence
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.bmc.inventory_summary import volumes
from metal.controllers.server.reasons import ConditionType, Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import erase_permission, firmware
from metal.evidence import record
from metal.evidence.signing import KeyUnusable
from metal.evidence.verdict import Verdict, judge, missing, with_firmware
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy

ACCEPT = "accept-owed-sanitization"
"""Operation that releases such a server without the erasure."""


async def _read_volumes(scope: Scope, evidence: SanitizationEvidence) -> SanitizationEvidence:
    """Read from the BMC, once and with the machine still on, the volumes of drives that no report names.

    The volumes as the tenant left them count, not those of the inventory. Raises BMCError and ApiError.
    """
    status = evidence.status
    judged = status.phase != EvidencePhase.RUNNING or status.volumes_read_at is not None
    if judged or not missing(scope.status.drives, status.drives):
        return evidence
    found = await scope.connected().inventory(scope.uri)
    client, kinds = scope.context.client, scope.context.kinds
    return await record.store_volumes(client, kinds, evidence, volumes(found.storages), found.problems, scope.now)


async def conclude(scope: Scope, evidence: SanitizationEvidence, late: str = "") -> Requeue | None:
    """None once the drives are erased, the machine is off and the evidence is signed. Raises BMCError and ApiError."""
    evidence = await _read_volumes(scope, evidence)
    busy = await power.converge(scope, PowerState.OFF, "sanitization ended", force=bool(late))
    if busy is not None:
        return busy
    running = evidence.status.phase == EvidencePhase.RUNNING
    resets = await firmware.finish(scope) if running else evidence.status.firmware
    verdict = with_firmware(_verdict(scope, evidence, late), resets)
    verdict = replace(verdict, remarks=(*verdict.remarks, *erase_permission.remarks(scope, evidence)))
    if running:
        try:
            key = await scope.deps.keys.signing_key()
        except KeyUnusable as exc:
            return scope.fail(Reason.SIGNING_KEY_UNUSABLE, f"the evidence cannot be signed: {exc}")
        now = scope.now
        client, kinds = scope.context.client, scope.context.kinds
        evidence = await record.conclude(client, kinds, evidence, verdict, key, now, resets)
        scope.context.metrics.count_sanitization(evidence)
    scope.set(sanitization_progress=None, boot_window=None, firmware_reset=None)
    if verdict.owed:
        return _report_owed(scope, evidence, verdict)
    _report_erased(scope, evidence, verdict)
    return None


def _verdict(scope: Scope, evidence: SanitizationEvidence, late: str = "") -> Verdict:
    report = evidence.status
    verdict = judge(evidence.spec.policy, scope.status.drives, report.drives, volumes=report.volumes, late=late)
    return verdict if verdict.owed or verdict.drives else _without_drives(scope, verdict)


def _without_drives(scope: Scope, verdict: Verdict) -> Verdict:
    """Never "no drives" while the BMC lists one, not even one without a serial number."""
    here = [d for storage in scope.status.storages for d in storage.drives if d.state != "Absent"]
    if not here:
        return verdict
    names = ", ".join(d.serial_number or d.name or "without name" for d in here)[:500]
    return replace(verdict, owed=(f"status.storages lists drives ({names}), and the probe reported none",))


def _report_owed(scope: Scope, evidence: SanitizationEvidence, verdict: Verdict) -> Requeue:
    owed = "; ".join(verdict.owed)[:1500]
    scope.set(tenancy=tenancy.not_erased(scope.tenancy, scope.now))
    scope.condition(
        ConditionType.SANITIZED,
        False,
        Reason.SANITIZATION_OWED,
        f"{owed} (SanitizationEvidence {evidence.metadata.name})",
    )
    operation = f"{scope.context.kinds.key(OPERATION)}={ACCEPT}"
    return scope.fail(
        Reason.SANITIZATION_OWED,
        f"{owed}. Repair or remove the drive, and destroy a removed one; to continue without its erasure, which the "
        f"evidence records: kubectl annotate servers {scope.name} {operation}",
    )


def _report_erased(scope: Scope, evidence: SanitizationEvidence, verdict: Verdict) -> None:
    remarks = "".join(f"; {remark}" for remark in verdict.remarks)
    count = len(verdict.drives)
    message = (
        f"{count} drives were erased, {verdict.reached} at least{remarks[:1000]} " if count else "it has no drives "
    )
    message += f"(SanitizationEvidence {evidence.metadata.name})"
    scope.condition(ConditionType.SANITIZED, True, verdict.reached, message)
    begun = tenancy.erasing(scope.tenancy, scope.now)
    scope.set(tenancy=tenancy.erased(begun, verdict.reached, scope.now), drives=verdict.drives)
    scope.record_event("Sanitized", message)


async def accept(scope: Scope) -> Requeue | None:
    """Execute operation=accept-owed-sanitization; None when no erasure is outstanding. Raises ApiError."""
    failure = scope.status.failure
    if scope.status.state != State.ERROR or failure is None or failure.reason != Reason.SANITIZATION_OWED:
        return None
    context, name = scope.context, scope.status.sanitization_evidence
    evidence = await record.find(context.client, context.kinds, name)
    if evidence is not None and evidence.status.accepted_at is None:
        try:
            key = await scope.deps.keys.signing_key()
        except KeyUnusable as exc:
            return scope.fail(Reason.SIGNING_KEY_UNUSABLE, f"the evidence cannot be signed: {exc}")
        evidence = await record.accept(context.client, context.kinds, evidence, key, scope.now)
    if evidence is not None:  # with Retain no discovery follows
        scope.set(drives=_verdict(scope, evidence).drives)
    scope.set(tenancy=tenancy.accepted(scope.tenancy, "Accepted", scope.now))
    message = f"an administrator accepted the sanitization failure (SanitizationEvidence {name}): {failure.message}"
    scope.condition(ConditionType.SANITIZED, False, "LossAccepted", message[:2000])
    return scope.transition(
        State.CLEANUP, "sanitization failure accepted; the server will be rediscovered", warning=True
    )
