"""ServerMaintenance takes a server out of service temporarily and restores its previous state afterwards."""

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
    """Whether the maintenance of a claimed server requires an approval."""

    OWNER_APPROVAL = "OwnerApproval"
    ENFORCED = "Enforced"


class MaintenanceState(StrEnum):
    """States of a ServerMaintenance."""

    PENDING = "Pending"
    IN_MAINTENANCE = "InMaintenance"
    FAILED = "Failed"


class ServerBootConfigurationTemplate(Model, frozen=True, kw_only=True):
    """Template of the ServerBootConfiguration that the server boots during the maintenance."""

    name: Annotated[str, Required()] = ""
    """Name for display. The ServerBootConfiguration has the name of the ServerMaintenance."""
    spec: Annotated[ServerBootConfigurationSpec, Required()] = ServerBootConfigurationSpec(server_ref=LocalRef())
    """Spec of the ServerBootConfiguration. Its serverRef is replaced by the serverRef of the ServerMaintenance."""


class ServerMaintenanceSpec(Model, frozen=True, kw_only=True):
    """Desired state of a maintenance: the server, and its power and boot during the maintenance."""

    policy: Annotated[str, Choice(*Policy), Defaulted()] = Policy.OWNER_APPROVAL.value
    """OwnerApproval waits until the owner of the ServerClaim approves the maintenance. Enforced does not wait. A server
    without a claim needs no approval."""
    server_ref: Annotated[LocalRef, Required(), Rule(IMMUTABLE, "serverRef is immutable")] = LocalRef()
    """Server to maintain."""
    server_power: Annotated[str, Choice("", "On", "Off")] = ""
    """Power state during the maintenance: On or Off. Empty leaves the power unchanged. Quote the value in YAML, where a
    bare Off is a boolean."""
    locator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="locatorLED", default=""
    )
    """Location LED during the maintenance: Unknown, Lit, Blinking or Off."""
    priority: Annotated[int, Range(-_INT32, _INT32 - 1), Defaulted()] = 0
    """Priority among the maintenances that wait for the same server. The highest value comes first."""
    server_boot_configuration_template: ServerBootConfigurationTemplate | None = None
    """What the server boots over the network once during the maintenance. Ignored while serverPower is Off."""


class ServerMaintenanceStatus(Model, frozen=True, kw_only=True):
    """Observed state of a maintenance."""

    state: Annotated[str, Choice("", *MaintenanceState)] = ""
    """State of the maintenance: Pending, InMaintenance or Failed."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    started_at: datetime | None = None
    """Time at which the server entered the state Maintenance."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the maintenance: InMaintenance, Approved and Overdue."""


class ServerMaintenance(Model, frozen=True, kw_only=True):
    """Takes a server out of service temporarily and restores its previous state afterwards."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerMaintenanceSpec = ServerMaintenanceSpec()
    status: ServerMaintenanceStatus = ServerMaintenanceStatus()
