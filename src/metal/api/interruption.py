"""What a Server remembers of the state that a maintenance or parking interrupted, and of a reset still to be done."""

from datetime import datetime

import msgspec

from metal.api.meta import Model


class Interruption(Model, frozen=True, kw_only=True):
    """The state that Maintenance or Parked interrupted, and what happened meanwhile."""

    state: str = ""
    """State that was interrupted; for Error the state that had failed."""
    maintenance_uid: str = msgspec.field(name="maintenanceUID", default="")
    """UID of the ServerMaintenance that holds the server."""
    touched: bool = False
    """True once the machine was on, booted or repaired meanwhile, so that its hardware is looked at again."""
    locator_led: bool = msgspec.field(name="locatorLED", default=False)
    """True while the location LED is the maintenance's."""


class OperationRequest(Model, frozen=True, kw_only=True):
    """A reset that somebody asked for by annotation. It is written down here before the annotation is removed."""

    operation: str
    """Value of the annotation."""
    requested_at: datetime | None = None
    """When it was taken from the annotation."""
    deadline: datetime | None = None
    """When it is dropped if the BMC could not be asked."""
    attempts: int = 0
    """How often the BMC was asked."""
    asked_at: datetime | None = None
    """When the BMC was asked, as long as its answer is not known: such a reset is never asked for again."""
