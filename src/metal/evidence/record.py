"""SanitizationEvidence in the API: created with the first report, updated by further ones, concluded by a verdict.

Each sanitization boot has one object, named after Server and boot window, so a repeated boot never overwrites the
evidence of an earlier one. Any replica of the registry may write; each write is guarded by resourceVersion. The
verdict is written with a signature over the whole object. Evidence has no owner and is never deleted by the operator.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from metal.api.boot_window import BootWindow
from metal.api.kinds import Kinds
from metal.api.sanitization import (
    EvidencePhase,
    FirmwareReset,
    RAIDVolume,
    SanitizationEvidence,
    SanitizationEvidenceStatus,
)
from metal.api.server import Server
from metal.evidence.chain import MACHINE, Signer, machine
from metal.evidence.report import SanitizationReport
from metal.evidence.statement import statement
from metal.evidence.verdict import Verdict
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.kube.client.protocol import Client
from metal.kube.controller.transitions import log_transition
from metal.kube.meta import mergepatch
from metal.kube.meta.permissions import Permission
from metal.machine import tenancy

THROTTLE = timedelta(seconds=10)
"""Shortest time between two progress reports that are written."""


def name_of(server: str, window: BootWindow) -> str:
    """Name of the evidence of one boot."""
    return f"{server[:200].rstrip('.-')}-{window.id}"


async def find(client: Client, kinds: Kinds, name: str) -> SanitizationEvidence | None:
    """The evidence of this name, or None. Raises ApiError."""
    try:
        return await client.get(kinds.evidence, name)
    except NotFound:
        return None


async def find_or_create(client: Client, kinds: Kinds, server: Server, window: BootWindow) -> SanitizationEvidence:
    """The evidence of this boot, created if it does not exist. Raises ApiError."""
    name = name_of(server.metadata.name, window)
    found = await find(client, kinds, name)
    if found is not None:
        return found
    tenant = tenancy.of(server)
    spec = {
        "serverRef": {"name": server.metadata.name}, "systemUUID": server.uuid, "claimUID": tenant.uid,
        "policy": tenant.policy, "bootWindow": window.id, "bootMethod": window.method,
        "bootTrust": window.trust,
    }  # fmt: skip
    labels = {kinds.key(MACHINE): machine(server.uuid)}
    try:
        return await client.create(kinds.evidence, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    except AlreadyExists:
        return await client.get(kinds.evidence, name)


def is_due(evidence: SanitizationEvidence, report: SanitizationReport, now: datetime) -> bool:
    """Whether to write a report: the final one, and until then progress at intervals of THROTTLE.

    Of a question only other drives: it is repeated until the drives were looked up.
    """
    status = evidence.status
    if report.done or status.reported_at is not None:
        return report.done
    if report.awaits_permission:
        return status.updated_at is None or status.drives != report.drives
    return status.updated_at is None or not status.updated_at <= now < status.updated_at + THROTTLE


async def store_report(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, report: SanitizationReport, now: datetime
) -> SanitizationEvidence:
    """Write a report. Raises Conflict when the evidence changed in between, and ApiError."""
    status = msgspec.structs.replace(
        evidence.status,
        phase=EvidencePhase.RUNNING,
        started_at=evidence.status.started_at or now,
        updated_at=now,
        reported_at=now if report.done else None,
        drives=report.drives,
        problems=report.problems,
    )
    return await write(client, kinds, evidence, status)


async def store_volumes(
    client: Client,
    kinds: Kinds,
    evidence: SanitizationEvidence,
    volumes: tuple[RAIDVolume, ...],
    problems: tuple[str, ...],
    now: datetime,
) -> SanitizationEvidence:
    """Write the volumes that the BMC reports, and its problems with reporting them. Raises ApiError."""
    all_problems = (*evidence.status.problems, *problems)
    status = msgspec.structs.replace(evidence.status, volumes=volumes, volumes_read_at=now, problems=all_problems)
    return await write(client, kinds, evidence, status)


async def conclude(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, verdict: Verdict, key: Signer, now: datetime,
    firmware: tuple[FirmwareReset, ...] = (),
) -> SanitizationEvidence:  # fmt: skip
    """Write the verdict with a signature. Raises ApiError."""
    status = msgspec.structs.replace(
        evidence.status,
        phase=EvidencePhase.FAILED if verdict.owed else EvidencePhase.SUCCEEDED,
        ended_at=now,
        firmware=firmware,
        owed=verdict.owed,
        remarks=(*verdict.remarks, *evidence.status.problems),
    )
    return await sign(client, kinds, evidence, status, key, now)


async def accept(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, key: Signer, now: datetime
) -> SanitizationEvidence:
    """Write, with a signature, that an administrator accepted what is owed. Raises ApiError."""
    return await sign(client, kinds, evidence, msgspec.structs.replace(evidence.status, accepted_at=now), key, now)


async def sign(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, status: SanitizationEvidenceStatus, key: Signer,
    now: datetime,
) -> SanitizationEvidence:  # fmt: skip
    """Write a status with a signature over it, as the next record of its machine. Raises Conflict and ApiError."""
    async with key.chain.lock:
        linked = await key.chain.link(msgspec.structs.replace(evidence, status=status))
        proves = msgspec.structs.replace(linked.status, proves=linked.status.proves or statement(linked))
        signed = key.key.sign(msgspec.structs.replace(linked, status=proves), now)
        written = await write(client, kinds, evidence, signed.status)
        await key.chain.advance(written)
    return written


async def write(
    client: Client, kinds: Kinds, evidence: SanitizationEvidence, status: SanitizationEvidenceStatus
) -> SanitizationEvidence:
    """Write a status. Raises Conflict when the evidence changed in between, and ApiError."""
    changes: dict[str, Any] = mergepatch.diff(msgspec.to_builtins(evidence.status), msgspec.to_builtins(status))
    body = {"metadata": {"resourceVersion": evidence.metadata.resource_version}, "status": changes}
    written = await client.patch_status(kinds.evidence, evidence.metadata.name, body)
    log_transition(kinds.evidence, evidence, evidence.status, status)
    return written


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions for evidence, which is never deleted."""
    return (
        Permission(kinds.evidence, ("get", "create"), "creates evidence of sanitization"),
        Permission(kinds.evidence, ("patch",), "writes the result of each drive and the verdict", "status"),
    )
