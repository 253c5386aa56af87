"""The boot window: one network boot of one server, as Server.status keeps it.

Its transitions are in `metal.machine.boot_window`.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from metal.api.common import ObjectRef
from metal.api.meta import Model


class Purpose(StrEnum):
    """What a window is for."""

    DISCOVERY = "Discovery"
    CLAIM = "Claim"
    MAINTENANCE = "Maintenance"
    SANITIZATION = "Sanitization"


class Phase(StrEnum):
    """Progress of the boot."""

    OPEN = "Open"
    SCRIPT_SERVED = "ScriptServed"
    IGNITION_SERVED = "IgnitionServed"
    SUCCEEDED = "Succeeded"
    CONTESTED = "Contested"
    CLOSED = "Closed"


class BootWindow(Model, frozen=True, kw_only=True):
    """One network boot of one server."""

    id: str
    """Random name of this boot; a report must carry a token of it."""
    purpose: str
    """Discovery, Claim, Maintenance or Sanitization."""
    config_ref: ObjectRef
    """ServerBootConfiguration that is booted."""
    config_uid: str = msgspec.field(name="configUID", default="")
    """UID of that ServerBootConfiguration."""
    config_generation: int = 0
    """metadata.generation of that ServerBootConfiguration; a newer generation needs another boot."""
    image: str = ""
    """Image that is booted."""
    ignition_secret: str | None = None
    """Name of the Secret with its Ignition; empty without Ignition."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim, for purpose Claim."""
    boot_generation: int = 0
    """spec.bootGeneration of the claim that requested this boot."""
    phase: str = "Open"
    """Open, ScriptServed, IgnitionServed, Succeeded, Contested or Closed."""
    opened_at: datetime
    """When the window opened."""
    expires_at: datetime
    """When the window closes without further action."""
    client_address: str = ""
    """IP address that received the boot script."""
    script_served_at: datetime | None = None
    """When the boot script was served."""
    ignition_served_at: datetime | None = None
    """When the Ignition was served."""
    reported_at: datetime | None = None
    """When the probe's report arrived; the final one of a sanitization."""
    token_digest: str = ""
    """SHA-256 of the script's token, hexadecimal; empty once the token is spent."""
    spent_token_digest: str = ""
    """SHA-256 of the script's token that fetched the Ignition; for 20 seconds the same client may fetch it again."""
    ignition_address: str = ""
    """IP address that received the Ignition. It can differ from clientAddress: the OS may get another lease than the
    firmware."""
    report_token_digest: str = ""
    """SHA-256 of the report's token, hexadecimal; empty once the token is spent."""
    receipt: str = ""
    """SHA-256 over the accepted report and its token; the probe may send the same report again if it missed the
    answer."""
