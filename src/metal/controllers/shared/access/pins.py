"""Pins of a BMC that outlive its status: a copy of each fingerprint in annotations of the BMC and of its BMCSecret.

A client with older types writes the whole status without `certificate` and `sshHostKey`, and a backup brings back a BMC
from before its pin. Without the copies the next device at the address would count as the first one, and would get the
password. Therefore:

- `change` is written before the pin is written to the status, so before anything is sent to the device.
- `restored` is the pin that applies. The annotation of the BMC decides, else that of the BMCSecret, for they were
  written before: another fingerprint in the status was pinned after the status was lost, and counts as refused.
- `change_secret` brings the copy in the BMCSecret up to date, before the password in it is sent. Each BMC has an
  annotation of its own there, so that BMCs with one BMCSecret do not conflict.
- Only an administrator changes a pin, with the operation that accepts the refused certificate or key. A `spec.tls`
  that requires another verification removes the pin of the certificate; a `spec.tls` that is absent does not.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

from metal.api import names
from metal.api.bmc import BMC, BMCSecret, Pin
from metal.api.kinds import Kinds

ANNOTATIONS = {"certificate": names.PINNED_CERTIFICATE, "ssh_host_key": names.PINNED_HOST_KEY}
"""The annotation, without the API group, by the field of the status."""
_MOST = 1000
"""Annotations of a BMCSecret from which on no pins are added: an object has 256 KiB of them at most."""


def kept(bmc: BMC, kinds: Kinds, field: str) -> str:
    """The fingerprint in the annotation of a BMC; empty without one."""
    return bmc.metadata.annotations.get(kinds.key(ANNOTATIONS[field]), "")


def kept_in(secret: BMCSecret, kinds: Kinds, field: str, name: str) -> str:
    """The fingerprint of the BMC with this name in its BMCSecret; empty without one."""
    return secret.metadata.annotations.get(_key(kinds, field, name), "")


def restored(bmc: BMC, kinds: Kinds, field: str, now: datetime, secret: BMCSecret | None = None) -> Pin | None:
    """The pin that applies, from the annotations of BMC and BMCSecret, and from the status."""
    pin: Pin | None = getattr(bmc.status, field)
    value = kept(bmc, kinds, field)
    if not value and secret is not None:
        value = kept_in(secret, kinds, field, bmc.metadata.name)
    if not value or (pin is not None and pin.sha256 == value):
        return pin
    return Pin(sha256=value, since=now, refused=pin.sha256 if pin is not None else "")


def change(kinds: Kinds, field: str, fingerprint: str) -> dict[str, Any]:
    """The merge patch of a BMC that keeps this fingerprint; it removes the annotation for an empty one."""
    return {"metadata": {"annotations": {kinds.key(ANNOTATIONS[field]): fingerprint or None}}}


def change_secret(kinds: Kinds, secret: BMCSecret, pins: Mapping[str, str], name: str) -> dict[str, str | None]:
    """The annotations to change so that a BMCSecret has these fingerprints, by field, of the BMC with this name."""
    notes = secret.metadata.annotations
    return {
        key: value or None
        for key, value in in_secret(kinds, pins, name).items()
        if notes.get(key, "") != value and (key in notes or len(notes) < _MOST)
    }


def in_secret(kinds: Kinds, pins: Mapping[str, str], name: str) -> dict[str, str]:
    """The annotations of a BMCSecret for these fingerprints, by field, of the BMC with this name."""
    return {_key(kinds, field, name): value for field, value in pins.items()}


def without_pins(annotations: Mapping[str, str], kinds: Kinds) -> dict[str, str]:
    """The annotations of a BMCSecret but for the pins."""
    prefixes = tuple(f"{kinds.key(one)}-" for one in ANNOTATIONS.values())
    return {key: value for key, value in annotations.items() if not key.startswith(prefixes)}


def _key(kinds: Kinds, field: str, name: str) -> str:
    """The annotation of a BMCSecret with a pin: a name can be longer than a key of an annotation."""
    return f"{kinds.key(ANNOTATIONS[field])}-{blake2b(name.encode(), digest_size=8).hexdigest()}"
