"""Which claim may own the data on a server or a drive: the table, and every rule that it replaced."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest

from metal.api.claim import ServerClaim
from metal.api.tenancy import TenantRef
from metal.controllers.server.tenancy.ownership import Ownership, names_another, ownership, record_of
from metal.kube.meta import conditions

ROWS: list[tuple[dict[str, Any], TenantRef | None, Ownership]] = [
    ({"uid": "u", "deleted": True}, TenantRef(uid="u"), Ownership.NONE),
    ({"uid": "u", "server": "s2"}, TenantRef(uid="u"), Ownership.PROVEN),
    ({"server": "s2", "phase": "Bound"}, TenantRef(namespace="n", name="c", uid="u"), Ownership.NONE),
    ({}, TenantRef(namespace="n", name="c", uid="u"), Ownership.NONE),
    ({"server": "s1"}, TenantRef(namespace="n", name="c", uid="u"), Ownership.LIKELY),
    ({"phase": "Bound"}, TenantRef(namespace="n", name="c", uid="u"), Ownership.LIKELY),
    ({"lost": True}, TenantRef(namespace="n", name="c", uid="u"), Ownership.LIKELY),
    ({"name": "next", "server": "s1"}, TenantRef(namespace="n", name="c", uid="u"), Ownership.NONE),
    ({"server": "s1", "phase": "Bound"}, None, Ownership.LIKELY),
    ({"server": "s1", "booted": "True"}, TenantRef(uid="unknown"), Ownership.LIKELY),
    ({"server": "s1"}, None, Ownership.NONE),
    ({"server": "s1"}, TenantRef(uid="u"), Ownership.NONE),
    ({"server": "s1", "phase": "Unbound", "booted": "False"}, TenantRef(uid="u"), Ownership.NONE),
    ({"phase": "Bound"}, None, Ownership.POSSIBLE),
    ({"server": "s1", "phase": "Bound"}, TenantRef(uid="u"), Ownership.POSSIBLE),
]


def claim(
    uid: str = "other", name: str = "c", server: str = "", phase: str = "", booted: str = "", *, lost: bool = False,
    deleted: bool = False,
) -> ServerClaim:  # fmt: skip
    """A claim of which the API shows this much."""
    at = "2026-01-01T00:00:00Z"
    said = [{"type": "Booted", "status": booted, "reason": "r", "message": "", "lastTransitionTime": at}] * bool(booted)
    said += [
        {"type": "Bound", "status": "False", "reason": "ServerLost", "message": "", "lastTransitionTime": at}
    ] * lost
    meta = {"name": name, "namespace": "n", "uid": uid, **({"deletionTimestamp": at} if deleted else {})}
    spec = {"serverRef": {"name": server}} if server else {}
    return msgspec.convert(
        {"metadata": meta, "spec": spec, "status": {"phase": phase, "conditions": said}}, ServerClaim
    )


def every_claim() -> Iterator[ServerClaim]:
    for uid, name, server, phase, booted, lost, deleted in product(
        ("u", "other"), ("c", "next"), ("", "s1", "s2"), ("", "Bound", "Unbound"), ("", "True", "False"),
        (False, True), (False, True),
    ):  # fmt: skip
        yield claim(uid, name, server, phase, booted, lost=lost, deleted=deleted)


TENANTS = (None, *(TenantRef(namespace="n" * bool(name), name=name, uid=uid)
                   for uid in ("", "unknown", "u") for name in ("", "c")))  # fmt: skip


@pytest.mark.parametrize(("shown", "tenant", "expected"), ROWS)
def test_each_row_of_the_table(shown: dict[str, Any], tenant: TenantRef | None, expected: Ownership) -> None:
    """The first row that matches a claim and the record of its tenant decides."""
    assert ownership(claim(**shown), record_of("s1", tenant)) is expected


def may_own_a_server(one: ServerClaim, tenant: TenantRef | None) -> bool:
    """The rule of the former `living_claims`: the claim stops the erasure of a server."""
    if one.metadata.deletion_timestamp is not None or names_another(one, "s1"):
        return False
    if tenant is not None and tenant.uid and one.metadata.uid == tenant.uid:
        return True
    if one.spec.server_ref is None:
        return False
    if tenant is None or tenant.uid in ("", "unknown"):
        return one.status.phase == "Bound" or conditions.is_true(one.status.conditions, "Booted")
    return (tenant.namespace, tenant.name) == (one.metadata.namespace, one.metadata.name)


def reports(one: ServerClaim) -> bool:
    """Without this a claim names a server in its spec only, which counted in the former rules."""
    return one.status.phase == "Bound" or conditions.is_true(one.status.conditions, "Booted")


def owns_a_drive(one: ServerClaim, uid: str) -> bool:
    """The rule of the former `owed_drives`: the claim stops the erasure of a moved drive."""
    if one.metadata.deletion_timestamp is not None:
        return False
    if uid:
        return one.metadata.uid == uid
    return one.spec.server_ref is not None and one.spec.server_ref.name == "s1" and reports(one)


def may_own_a_machine(one: ServerClaim, uids: set[str]) -> bool:
    """The rule of the former `recreated`: the claim may have the machine of a Server that was created again."""
    if one.metadata.deletion_timestamp is not None:
        return False
    named = one.spec.server_ref is not None and one.spec.server_ref.name == "s1"
    if not uids:
        return named and conditions.is_true(one.status.conditions, "Booted")
    return one.metadata.uid in uids or (named and reports(one))


@pytest.mark.parametrize("tenant", TENANTS)
def test_no_claim_that_stopped_an_erasure_before_is_overlooked(tenant: TenantRef | None) -> None:
    """For every claim and every record, each former rule is contained in the threshold that replaced it."""
    known, uid = record_of("s1", tenant), tenant.uid if tenant is not None else ""
    drive = record_of("s1", TenantRef(uid=uid))
    for one in every_claim():
        of_server = ownership(one, known) if not names_another(one, "s1") else Ownership.NONE
        assert of_server >= (Ownership.LIKELY if may_own_a_server(one, tenant) else Ownership.NONE)
        least = Ownership.LIKELY if drive.uids else Ownership.POSSIBLE
        assert ownership(one, drive) >= least or not owns_a_drive(one, uid)
        for uids in ({uid} if uid else set(), {uid, "u2"}):
            least = Ownership.POSSIBLE if uids else Ownership.LIKELY
            found = ownership(one, record_of("s1", None, uids))
            assert found >= least or not may_own_a_machine(one, uids)
