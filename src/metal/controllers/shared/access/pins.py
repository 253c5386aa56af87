"""Pins of a BMC that outlive its status: a copy of each fingerprint in an annotation of the BMC.

A client with older types writes the whole status without `certificate` and `sshHostKey`. Without the copies the next
device at the address would count as the first one, and would get the password. Therefore:

- `change` is written before the pin is written to the status, so before anything is sent to the device.
- `restored` is the pin that applies. The annotation decides where both exist: another fingerprint in the status was
  pinned after the status was lost, and counts as refused.
- Only an administrator changes a pin, with the operation that accepts the refused certificate or key. A `spec.tls`
  that requires another verification removes the pin of the certificate; a `spec.tls` that is absent does not.
"""

from datetime import datetime
from typing import Any

from metal.api import names
from metal.api.bmc import BMC, Pin
from metal.api.kinds import Kinds

ANNOTATIONS = {"certificate": names.PINNED_CERTIFICATE, "ssh_host_key": names.PINNED_HOST_KEY}
"""The annotation, without the API group, by the field of the status."""


def kept(bmc: BMC, kinds: Kinds, field: str) -> str:
    """The fingerprint in the annotation of a BMC; empty without one."""
    return bmc.metadata.annotations.get(kinds.key(ANNOTATIONS[field]), "")


def restored(bmc: BMC, kinds: Kinds, field: str, now: datetime) -> Pin | None:
    """The pin that applies, from annotation and status."""
    pin: Pin | None = getattr(bmc.status, field)
    value = kept(bmc, kinds, field)
    if not value or (pin is not None and pin.sha256 == value):
        return pin
    return Pin(sha256=value, since=now, refused=pin.sha256 if pin is not None else "")


def change(kinds: Kinds, field: str, fingerprint: str) -> dict[str, Any]:
    """The merge patch of a BMC that keeps this fingerprint; it removes the annotation for an empty one."""
    return {"metadata": {"annotations": {kinds.key(ANNOTATIONS[field]): fingerprint or None}}}
