"""Erases a tenant's data: a network boot of the probe, whose report is judged, signed and kept as evidence.

In: a machine that is off, and the policy in `status.tenancy.policy`. Nothing starts while the claim still exists.

1. The boot configuration with the erasing probe is written, and the BMC is asked to reset firmware settings
   (`tenancy.firmware`), which the boot performs.
   Before each boot, also after a failed one or a maintenance, the drives that the BMC lists are looked up
   (`owed_drives.before_erasure`): one with data of another server's claim may have been inserted.
2. `netboot.boot` boots the probe. The registry stores its reports in a SanitizationEvidence named after the boot
   window; `_follow` copies the progress to `status.sanitizationProgress`. An evidence whose boot was interrupted is
   concluded with the verdict that it proves nothing.
3. The probe asks before it erases the first drive: also a drive that only the probe sees is looked up
   (`erase_permission`), and the time limit begins when the erasure is allowed.
4. The time limit grows with the largest drive that was reported. A probe that has its Ignition and reports nothing for
   `discovery_timeout` has failed, independent of the size of the drives. A limit that passed during an outage of
   manager, API or BMC is extended, because the report may wait to be accepted.
5. After the final report, or when the time is over, the volumes that contain drives which no report names are read once
   from the BMC; the machine is switched off; `metal.evidence.verdict` judges; the verdict is signed and written
   (`sanitization_result`).

Out: what `sanitization_result` reports: `status.tenancy` with data Clean, or Error.
"""

from contextlib import suppress
from datetime import timedelta

import msgspec

from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.sanitization import EvidencePhase, SanitizationEvidence
from metal.api.server import State
from metal.controllers.server.netboot import boot, ignition, probe_boot
from metal.controllers.server.netboot.progress import has_succeeded
from metal.controllers.server.netboot.readiness import await_config
from metal.controllers.server.reasons import Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import (
    erase_permission,
    firmware,
    living_claims,
    owed_drives,
    sanitization_result,
)
from metal.controllers.server.tenancy.tenancy import find_claim
from metal.evidence import record
from metal.evidence.progress import progress
from metal.evidence.signing import KeyUnusable
from metal.evidence.verdict import Verdict
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy
from metal.machine.report import drives_in

_MISSED = timedelta(minutes=1)
"""How long after a deadline a pass shows that there was an outage; a manager that works makes one at the deadline."""
_IN_PROGRESS = (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED, Phase.SUCCEEDED)


async def run(scope: Scope) -> Requeue | None:
    """One step; None once the drives are erased, the machine is off and the evidence is signed. Raises BMCError."""
    window = current_window(scope)
    in_progress = window is not None and window.phase in _IN_PROGRESS
    if not in_progress and (busy := await _before_boot(scope, window)) is not None:
        return busy
    config = probe_boot.find(scope)
    if config is None:
        return _begin_again(scope)
    evidence = await _follow(scope)
    if window is not None and evidence is not None and erase_permission.is_awaited(window, evidence):
        busy = await erase_permission.decide(scope, window, evidence, timeout(scope, evidence))
        await _follow(scope)
        return busy
    if window is not None and window.phase == Phase.IGNITION_SERVED and evidence is not None:
        window = _after_outage(scope, _extend_window(scope, window, evidence))
        if scope.now >= window.expires_at:
            return await sanitization_result.conclude(
                scope, evidence, late=f"{_hours(timeout(scope, evidence))} were not sufficient"
            )
    if window is not None and evidence is None and _is_silent(scope, window):
        busy = boot.failed(scope, window, "the machine fetched its Ignition and does not report")
        await _follow(scope)
        return busy
    return await _boot(scope, config, evidence)


async def _before_boot(scope: Scope, window: BootWindow | None) -> Requeue | None:
    """None when the probe may be booted. Raises BMCError and ApiError."""
    if (busy := await erase_permission.switch_off_refused(scope, window)) is not None:
        return busy
    if await find_claim(scope) is not None:
        return scope.transition(State.RESERVED, "the claim exists; its data is not erased", warning=True)
    if (owned := await living_claims.before_erasure(scope)) is not None:
        return owned
    return await _prepare(scope, window) or await firmware.prepare(scope)


def current_window(scope: Scope) -> BootWindow | None:
    """The window of the last network boot, if it was for sanitization."""
    window = scope.status.boot_window
    return window if window is not None and window.purpose == Purpose.SANITIZATION else None


def timeout(scope: Scope, evidence: SanitizationEvidence | None = None) -> float:
    """How long one sanitization may take, in seconds: drives are erased in parallel, so the largest one counts."""
    sizes = [drive.size for drive in scope.status.drives]
    sizes += [drive.size for drive in evidence.status.drives] if evidence is not None else []
    return scope.settings.sanitization_timeout + max(sizes, default=0) / scope.settings.sanitization_rate


def _is_silent(scope: Scope, window: BootWindow) -> bool:
    """True when the probe has its Ignition and has not reported for too long; drives are not being erased then."""
    served = window.ignition_served_at
    if window.phase != Phase.IGNITION_SERVED or served is None:
        return False
    return scope.now >= served + timedelta(seconds=scope.settings.discovery_timeout)


async def _prepare(scope: Scope, window: BootWindow | None) -> Requeue | None:
    if not scope.status.drives:
        scope.set(drives=drives_in(scope.status.storages))
    refused = await erase_permission.refused_drives(scope, window)
    if (busy := await owed_drives.before_erasure(scope, refused)) is not None:
        return busy
    settings, status = scope.settings, scope.status
    try:
        text = ignition.sanitization(
            settings.probe_bundle, settings.registry_url, scope.server.uuid, scope.tenancy.policy, status.drives
        )
    except ValueError as exc:
        return scope.fail(Reason.INVALID_SPEC, str(exc))
    config = probe_boot.find(scope)
    if config is None or not probe_boot.is_current(scope, config, text):
        await scope.require_latest()  # a former leader must not overwrite the configuration of a discovery in progress
        await probe_boot.write(scope, text)
    return None


def _begin_again(scope: Scope) -> Requeue:
    """The boot configuration was deleted during its boot."""
    scope.set(boot_window=None)
    scope.record_event(
        "BootConfigurationGone", "the boot configuration of the sanitization was deleted; it is recreated", warning=True
    )
    return Requeue(1.0)


async def _boot(scope: Scope, config: ServerBootConfiguration, evidence: SanitizationEvidence | None) -> Requeue | None:
    if not has_succeeded(scope, config):
        unready = await_config(scope, config)
        if unready is not None:
            return unready
    if tenancy.holds_data(scope.tenancy):
        scope.set(tenancy=tenancy.erasing(scope.tenancy, scope.now))
    before, limit = scope.status.boot_window, timeout(scope, evidence)
    busy = await boot.network_boot(
        scope, config, Purpose.SANITIZATION, timeout=limit, begin_within=scope.settings.discovery_timeout
    )
    if scope.status.boot_window is not before:
        await _follow(scope)
    if busy is not None:
        return busy
    if evidence is None or evidence.status.reported_at is None:
        scope.set(boot_window=None, tenancy=tenancy.not_erased(scope.tenancy, scope.now))
        return scope.fail(
            Reason.EVIDENCE_LOST,
            "the evidence of a completed sanitization was deleted. A retry erases the drives again",
        )
    return await sanitization_result.conclude(scope, evidence)


async def _follow(scope: Scope) -> SanitizationEvidence | None:
    """The evidence of the current boot, if it exists; that of an interrupted boot is concluded."""
    window, known = current_window(scope), scope.status.sanitization_evidence
    name = record.name_of(scope.name, window) if window is not None else known
    if known and known != name:
        await _break_off(scope, known)
    if window is None:
        return None
    scope.set(sanitization_evidence=name)
    if window.phase in (Phase.OPEN, Phase.SCRIPT_SERVED):  # no token for a report exists yet
        return None
    if window.phase in (Phase.CLOSED, Phase.CONTESTED):
        await _break_off(scope, name)
        scope.set(sanitization_progress=None)
        return None
    evidence = await record.find(scope.context.client, scope.context.kinds, name)
    if evidence is not None:
        scope.set(sanitization_progress=progress(evidence))
    return evidence


async def abandon(scope: Scope) -> None:
    """The Server is being deleted: conclude the evidence of an erasure in progress. Raises ApiError."""
    if scope.status.sanitization_evidence:
        await _break_off(scope, scope.status.sanitization_evidence)


async def _break_off(scope: Scope, name: str) -> None:
    evidence = await record.find(scope.context.client, scope.context.kinds, name)
    if evidence is None or evidence.status.phase != EvidencePhase.RUNNING:
        return
    verdict = Verdict(owed=("the erasure was interrupted, so it proves nothing",))
    with suppress(KeyUnusable):  # the next verdict that must be signed reports it
        key = await scope.deps.keys.signing_key()
        await record.conclude(scope.context.client, scope.context.kinds, evidence, verdict, key, scope.now)


def _extend_window(scope: Scope, window: BootWindow, evidence: SanitizationEvidence) -> BootWindow:
    """Extend the time limit for a drive that was unknown before and is larger than the known ones."""
    until = window.opened_at + timedelta(seconds=timeout(scope, evidence))
    if until > window.expires_at:
        window = msgspec.structs.replace(window, expires_at=until)
        scope.set(boot_window=window)
    return window


def _after_outage(scope: Scope, window: BootWindow) -> BootWindow:
    """Extend the time limit if nothing was done when it was reached: a report may be waiting to be accepted."""
    if scope.now - window.expires_at > _MISSED:
        window = msgspec.structs.replace(
            window, expires_at=scope.now + timedelta(seconds=scope.settings.sanitization_grace)
        )
        scope.set(boot_window=window)
    return window


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"
