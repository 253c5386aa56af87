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
    """OwnerApproval or Enforced. OwnerApproval waits until the ServerClaim of the server has the label
    metal.ironcore.dev/maintenance-approved=true. Enforced does not wait, in the namespaces that
    maintenance.enforcedNamespaces of the manager's configuration names (its own unless set); elsewhere it counts as
    OwnerApproval. A server without a claim needs no approval. Defaults to OwnerApproval."""
    server_ref: Annotated[LocalRef, Required(), Rule(IMMUTABLE, "serverRef is immutable")] = LocalRef()
    """Server to maintain. Immutable."""
    server_power: Annotated[str, Choice("", "On", "Off")] = ""
    """Power state during the maintenance: On or Off. If empty, the power state is not changed, except by the network
    boot of serverBootConfigurationTemplate. Quote the value in YAML, where an unquoted Off is a boolean."""
    locator_led: Annotated[str, Choice("", "Unknown", "Lit", "Blinking", "Off")] = msgspec.field(
        name="locatorLED", default=""
    )
    """State of the location LED during the maintenance: Unknown, Lit, Blinking or Off. Empty and Unknown do not change
    it."""
    priority: Annotated[int, Range(-_INT32, _INT32 - 1), Defaulted()] = 0
    """Priority among the maintenances that wait for the same server. The highest value comes first. A maintenance in
    progress is not interrupted. Defaults to 0."""
    server_boot_configuration_template: ServerBootConfigurationTemplate | None = None
    """What the server boots over the network once during the maintenance. Ignored while serverPower is Off."""


class ServerMaintenanceStatus(Model, frozen=True, kw_only=True):
    """Observed state of a maintenance."""

    state: Annotated[str, Choice("", *MaintenanceState)] = ""
    """State of the maintenance: Pending, InMaintenance or Failed. It ends when the ServerMaintenance is deleted."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    started_at: datetime | None = None
    """Time at which the server entered the state Maintenance."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the maintenance: Approved (no approval is missing), InMaintenance (the server is in maintenance)
    and Overdue (it takes longer than timeouts.maintenance in the manager's configuration)."""


class ServerMaintenance(Model, frozen=True, kw_only=True):
    """ServerMaintenance takes a server out of service until it is deleted. Then a claimed server returns to its claim,
    and a server whose hardware may have changed is discovered again."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerMaintenanceSpec = ServerMaintenanceSpec()
    status: ServerMaintenanceStatus = ServerMaintenanceStatus()
