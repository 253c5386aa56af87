"""The record of tenancy in Server.status: whose machine it is, and whether its drives hold data of a tenant."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.boot_window import Method, Trust
from metal.api.markers import Choice
from metal.api.meta import Model
from metal.api.sanitization import Policy


class Data(StrEnum):
    """Whether the drives of a server hold data of a tenant. docs/states.md has the transitions."""

    CLEAN = "Clean"
    UNKNOWN = "Unknown"
    DIRTY = "Dirty"
    ERASING = "Erasing"
    ACCEPTED = "Accepted"


class TenantRef(Model, frozen=True, kw_only=True):
    """The ServerClaim of a tenant."""

    namespace: str = ""
    """Namespace of the claim. Empty when unknown."""
    name: str = ""
    """Name of the claim. Empty when unknown."""
    uid: str = ""
    """UID of the claim. A claim of the same name with another UID is another tenant."""


class ClaimBoot(Model, frozen=True, kw_only=True):
    """The last network boot of a claim. It is recorded on the Server so that the machine is not booted over the network
    a second time."""

    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim."""
    image: str = ""
    """Image that was booted."""
    ignition_secret: str | None = None
    """Name of the Secret with the Ignition that was booted. Empty without Ignition; absent when unknown."""
    booted_at: datetime | None = None
    """Time at which the machine had fetched everything that it needs to boot. Empty until then."""
    boot_generation: int = 0
    """The spec.bootGeneration of the claim for which this boot was done."""
    method: Annotated[str, Choice("", *Method)] = ""
    """How the machine was booted: VirtualMedia, UEFIHTTP or IPXE. Empty when unknown."""
    trust: Annotated[str, Choice("", *Trust)] = ""
    """How it was known that the machine itself was booted: OutOfBand, Lease or FirstRequest. Empty when unknown."""
    requested_generation: int = 0
    """The spec.bootGeneration of the claim for which another boot is pending or in progress."""


class Tenancy(Model, frozen=True, kw_only=True):
    """Whose machine the server is, and whether its drives hold data of a tenant. Every decision to boot, erase, bind or
    release the server reads this record."""

    claim_ref: TenantRef | None = None
    """The last claim whose operating system may have run on the machine. Removed when the server is released for other
    claims."""
    data: Annotated[str, Choice("", *Data)] = ""
    """Whether the drives hold data of a tenant: Clean (erased, or no tenant used them), Unknown (another operator or a
    lost status), Dirty, Erasing, or Accepted (data may remain by decision). Only a server with Clean or Accepted data
    becomes Available."""
    since: datetime | None = None
    """Time at which data last changed."""
    policy: Annotated[str, Choice("", *Policy)] = ""
    """How the drives must be sanitized after the current claim: None, Clear or Purge. It is never lowered during a
    tenancy, and kept until the server is sanitized."""
    boot: ClaimBoot | None = None
    """The last network boot of the current claim."""
    sanitization: str = ""
    """Result of the last sanitization: Clear or Purge (the weakest category that a drive reached; the policy if there
    is no drive), None (the policy was None, nothing was erased), NotOwed (nothing of the claim had reached the machine,
    nothing was erased) or Accepted (an administrator accepted a failed sanitization). Empty during a tenancy."""

    @property
    def uid(self) -> str:
        """UID of the claim; empty without one."""
        return self.claim_ref.uid if self.claim_ref is not None else ""
