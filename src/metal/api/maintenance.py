"""ServerMaintenance: takes a server out of service for a while, and gives it back as it was."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.claim import ServerBootConfigurationSpec
from metal.api.common import LocalRef
from metal.api.markers import IMMUTABLE, Choice, Defaulted, Range, Required, Rule
from metal.api.meta import Conditions, Model, ObjectMeta

_INT32 = 2**31


class Policy(StrEnum):
    """Whose word a claimed server's maintenance needs."""

    OWNER_APPROVAL = "OwnerApproval"
    ENFORCED = "Enforced"


class MaintenanceState(StrEnum):
    """States of a maintenance."""

    PENDING = "Pending"
    IN_MAINTENANCE = "InMaintenance"
    FAILED = "Failed"


class ServerBootConfigurationTemplate(Model, frozen=True, kw_only=True):
    """What the server boots from the network during the maintenance."""

    name: Annotated[str, Required()] = ""
    """Name for people; the ServerBootConfiguration has the name of the maintenance."""
    spec: Annotated[ServerBootConfigurationSpec, Required()] = ServerBootConfigurationSpec(server_ref=LocalRef())
    """What is booted; serverRef names the server of the maintenance, whatever stands here."""


class ServerMaintenanceSpec(Model, frozen=True, kw_only=True):
    """What is to be done with which server."""

    policy: Annotated[str, Choice(*Policy), Defaulted()] = Policy.OWNER_APPROVAL.value
    """OwnerApproval waits until the owner of the claim approves it; Enforced does not. Both take a free server."""
    server_ref: Annotated[LocalRef, Required(), Rule(IMMUTABLE, "serverRef is immutable")] = LocalRef()
    """Server that is maintained."""
    server_power: Annotated[str, Choice("", "On", "Off")] = ""
    """On or Off during the maintenance; empty leaves it. Quote it in YAML: a bare Off is a truth value there."""
    locator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="locatorLED", default=""
    )
    """Location LED during the maintenance: Unknown, Lit, Blinking or Off."""
    priority: Annotated[int, Range(-_INT32, _INT32 - 1), Defaulted()] = 0
    """Of several that wait for one server the highest comes first."""
    server_boot_configuration_template: ServerBootConfigurationTemplate | None = None
    """What the server boots from the network, once, unless serverPower is Off."""


class ServerMaintenanceStatus(Model, frozen=True, kw_only=True):
    """How far the maintenance is."""

    state: Annotated[str, Choice("", *MaintenanceState)] = ""
    """Pending, InMaintenance or Failed."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    started_at: datetime | None = None
    """When the server entered Maintenance for it."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """InMaintenance, Approved and Overdue."""


class ServerMaintenance(Model, frozen=True, kw_only=True):
    """Takes a server out of service for a while."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerMaintenanceSpec = ServerMaintenanceSpec()
    status: ServerMaintenanceStatus = ServerMaintenanceStatus()
