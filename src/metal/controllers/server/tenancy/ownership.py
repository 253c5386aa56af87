"""Which claim may own the data on a server or on a drive. Every search for an owner of data asks `ownership`.

`Record` is what was recorded when the data was written: the Server, and the claim by UID and by name as far as they are
known. The first matching row decides:

| claim | record | ownership |
|---|---|---|
| is being deleted | | NONE |
| has the recorded UID | | PROVEN |
| names another server; or names none and reports none | | NONE |
| has the recorded name: it was restored | name | LIKELY |
| has another name | name and UID | NONE |
| reports no server: its spec, which a tenant writes, is no evidence | | NONE |
| names the server, and reports that it has it | no UID | LIKELY |
| any other | | POSSIBLE |

A claim names a server by `spec.serverRef`. It reports one by phase Bound or by condition Booted; one that was restored
without `spec.serverRef`, also by the reason ServerLost that the claim controller then sets. With PROVEN a server is
given back to the claim. With LIKELY nothing is erased. POSSIBLE is a claim that may be a later one: it counts where
nothing else tells whose the data is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from metal.api.claim import ServerClaim
from metal.api.tenancy import TenantRef
from metal.controllers.shared.condition_types import BOOTED, BOUND, SERVER_LOST
from metal.kube.meta import conditions

_UNKNOWN_UIDS = ("", "unknown")


class Ownership(IntEnum):
    """How likely it is that data is a claim's."""

    NONE = 0
    POSSIBLE = 1
    LIKELY = 2
    PROVEN = 3


@dataclass(frozen=True)
class Record:
    """What was recorded of the claim that wrote the data."""

    server: str
    """The Server on whose machine it was written."""
    uids: frozenset[str] = frozenset()
    """UIDs of the claims that wrote it; empty when unknown."""
    name: tuple[str, str] | None = None
    """Namespace and name of the claim, when known."""


def record_of(server: str, tenant: TenantRef | None, uids: Iterable[str] = ()) -> Record:
    """The record of a tenant of this Server, or of several by their UIDs."""
    known = {*uids, tenant.uid if tenant is not None else ""}.difference(_UNKNOWN_UIDS)
    named = (tenant.namespace, tenant.name) if tenant is not None and tenant.name else None
    return Record(server, frozenset(known), named)


def ownership(claim: ServerClaim, of: Record) -> Ownership:
    """Whether the claim may own the data; the table of this module."""
    if claim.metadata.deletion_timestamp is not None:
        return Ownership.NONE
    if claim.metadata.uid in of.uids:
        return Ownership.PROVEN
    reports = _reports_server(claim)
    if names_another(claim, of.server) or not (claim.spec.server_ref or reports):
        return Ownership.NONE
    if of.name is not None and (of.name == _name(claim) or of.uids):
        return Ownership.LIKELY if of.name == _name(claim) else Ownership.NONE
    if not reports:
        return Ownership.NONE
    named = claim.spec.server_ref is not None
    return Ownership.LIKELY if named and not of.uids else Ownership.POSSIBLE


def names_another(claim: ServerClaim, server: str) -> bool:
    """True when spec.serverRef of the claim is another server."""
    return claim.spec.server_ref is not None and claim.spec.server_ref.name != server


def _name(claim: ServerClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name


def _reports_server(claim: ServerClaim) -> bool:
    """True when the status of the claim says that it has a server, or had one that it no longer names."""
    status, bound = claim.status, conditions.find(claim.status.conditions, BOUND)
    lost = claim.spec.server_ref is None and bound is not None and bound.reason == SERVER_LOST
    return status.phase == "Bound" or conditions.is_true(status.conditions, BOOTED) or lost
