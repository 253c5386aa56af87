"""Keeps a copy of the record of tenancy outside of the status, and rebuilds from it a status that was lost.

`mark` adds the annotation (`metal.machine.kept_tenancy`) to the first write of a new Server. `keep` writes it before
the machine is touched for a claim; `change` adds it to another write when the record becomes harmless. A Server with
the annotation and without a record has lost its status; `rebuild` then makes the record from the annotation. A boot
counts as done when the annotation or the claim says so. The known drives come from every source that outlives the
status: the annotation, the last report of the probe, the evidence of the machine, and `status.storages`.
"""

from typing import Any

import msgspec

from metal.api import names
from metal.api.core import CONFIG_MAP
from metal.api.sanitization import KnownDrive
from metal.api.server import State
from metal.api.tenancy import ClaimBoot, Tenancy
from metal.controllers.server.scope import Scope
from metal.controllers.shared.condition_types import BOOTED
from metal.evidence.chain import MACHINE, machine
from metal.evidence.drives import as_known
from metal.kube.client.errors import NotFound
from metal.kube.meta import conditions
from metal.kube.meta.objects import Key
from metal.machine import drive_identity, kept_tenancy
from metal.machine.identity import is_shared
from metal.machine.report import drives_in, known_drives


def change(scope: Scope, tenancy: Tenancy) -> dict[str, Any]:
    """The merge patch for the Server's metadata that keeps this record; empty when it is kept."""
    key, value = scope.context.kinds.key(names.TENANCY), kept_tenancy.of(tenancy, scope.status.drives)
    if scope.server.metadata.annotations.get(key) == value:
        return {}
    return {"annotations": {key: value}}


def mark(scope: Scope) -> dict[str, Any]:
    """The merge patch for the metadata of a Server without a state: it is enrolled by this operator from now on."""
    key = scope.context.kinds.key(names.TENANCY)
    if scope.status.state or scope.server.spec.server_claim_ref is not None or key in scope.server.metadata.annotations:
        return {}
    return {"annotations": {key: kept_tenancy.NEW}}


async def keep(scope: Scope) -> None:
    """Write the copy of a record that must not be forgotten. Raises ApiError."""
    known = scope.tenancy
    if known.data and kept_tenancy.is_dangerous(known) and (metadata := change(scope, known)):
        await scope.patch({"metadata": metadata})


def annotation(scope: Scope) -> str | None:
    """The copy of the record, as it is kept outside of the status."""
    return scope.server.metadata.annotations.get(scope.context.kinds.key(names.TENANCY))


async def rebuild(scope: Scope, state: State | None) -> None:
    """Rebuild what was lost with the status of a Server that this operator managed, and enter `state`, if any."""
    value = annotation(scope) or ""
    known = _with_boot(scope, kept_tenancy.rebuilt(value, scope.now))
    scope.set(tenancy=known, since=scope.status.since or scope.now, drives=await _drives(scope, value))
    scope.record_event(
        "StatusLost",
        f"status.tenancy was lost: another client wrote the status, or a backup was restored. Rebuilt: {known.data}",
        warning=True,
    )
    if state is not None:
        scope.transition(state, "the status was lost; the Server had a tenant", warning=True)


def _with_boot(scope: Scope, known: Tenancy) -> Tenancy:
    """The record, with a boot that only the claim still knows."""
    ref = known.claim_ref
    claim = scope.deps.claims.get(Key(ref.name, ref.namespace)) if ref is not None else None
    if known.boot is not None or claim is None or ref is None or claim.metadata.uid != ref.uid:
        return known
    if not conditions.is_true(claim.status.conditions, BOOTED):
        return known
    boot = ClaimBoot(claim_uid=ref.uid, booted_at=scope.now, boot_generation=claim.status.boot_generation)
    return msgspec.structs.replace(known, boot=boot)


async def _drives(scope: Scope, value: str) -> tuple[KnownDrive, ...]:
    """The drives of every source, each once; the probe's own report names them best."""
    kept, listed = kept_tenancy.drives_in(value), drives_in(scope.status.storages)
    return drive_identity.union(scope.status.drives, kept, await _reported(scope), await _in_evidence(scope), listed)


async def _reported(scope: Scope) -> tuple[KnownDrive, ...]:
    try:
        name, home = names.inventory_name(scope.name), scope.settings.namespace
        stored = await scope.context.client.get(CONFIG_MAP, name, home)
        report = msgspec.json.decode(stored.data[names.REPORT_KEY], type=dict[str, object])
    except (NotFound, KeyError, msgspec.DecodeError, msgspec.ValidationError):
        return ()
    return known_drives(report, scope.status.storages)


async def _in_evidence(scope: Scope) -> tuple[KnownDrive, ...]:
    """The drives in evidence of an erasure that is outstanding and was not accepted."""
    context = scope.context
    label = f"{context.kinds.key(MACHINE)}={machine(scope.server.uuid)}"
    listed = list((await context.client.list(context.kinds.evidence, labels=label)).items)
    if is_shared(scope.server.uuid):  # evidence of other machines has the same label
        listed = [one for one in listed if one.spec.server_ref.name == scope.name]
    owed = (one for one in listed if one.status.owed and one.status.accepted_at is None)
    return tuple(as_known(drive) for one in owed for drive in one.status.drives)
