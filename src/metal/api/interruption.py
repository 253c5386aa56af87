"""The state that a maintenance or parking interrupted, and a requested reset that is not complete."""

from datetime import datetime

import msgspec

from metal.api.meta import Model


class Interruption(Model, frozen=True, kw_only=True):
    """The state that Maintenance or Parked interrupted, and what has changed since."""

    state: str = ""
    """State that was interrupted. If it was Error, the state that had failed."""
    maintenance_uid: str = msgspec.field(name="maintenanceUID", default="")
    """UID of the ServerMaintenance that holds the server."""
    touched: bool = False
    """True if the machine was powered on, booted or repaired since. A server without a claim is then discovered
    again."""
    locator_led: bool = msgspec.field(name="locatorLED", default=False)
    """True while the maintenance controls the location LED."""


class OperationRequest(Model, frozen=True, kw_only=True):
    """A reset of the server that was requested with the annotation metal.ironcore.dev/operation. It is recorded here
    before the annotation is removed."""

    operation: str
    """Value of the annotation, such as hard-restart-server."""
    requested_at: datetime | None = None
    """Time at which the annotation was read."""
    deadline: datetime | None = None
    """Time at which the request is dropped if the BMC did not accept it."""
    attempts: int = 0
    """Number of requests that were sent to the BMC."""
    asked_at: datetime | None = None
    """Time of a request to the BMC whose answer is not known. Such a reset is not requested again."""
