"""What becomes of metadata when an object is born or changed. Its rules of form are in `objectmeta`."""

import random
import uuid
from datetime import UTC, datetime
from typing import Any

from metal.apiserver.status import bad_request

Obj = dict[str, Any]

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def timestamp(moment: datetime) -> str:
    """metav1.Time on the wire: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def uid(rng: random.Random) -> str:
    """A version 4 UUID from injected randomness."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def generated(prefix: str, rng: random.Random) -> str:
    """A name made of generateName and five characters, within 63."""
    return prefix[:58] + "".join(rng.choice(_SUFFIX_ALPHABET) for _ in range(5))


def check_shape(meta: object) -> None:
    """Raises StatusError 400 when metadata is not what every kind's metadata is."""
    if not isinstance(meta, dict):
        raise bad_request("metadata: expected an object")
    for name in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if not isinstance(meta.get(name, ""), str):
            raise bad_request(f"metadata.{name}: expected a string")
    for name in ("labels", "annotations"):
        held = meta.get(name)
        if held is None or held == {}:
            meta.pop(name, None)
        elif not isinstance(held, dict) or not all(isinstance(v, str) for v in held.values()):
            raise bad_request(f"metadata.{name}: expected an object whose values are strings")
    _check_lists(meta)


def _check_lists(meta: Obj) -> None:
    finalizers = meta.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(f, str) for f in finalizers):
        raise bad_request("metadata.finalizers: expected a list of strings")
    owners = meta.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(o, dict) for o in owners):
        raise bad_request("metadata.ownerReferences: expected a list of objects")
    for name in ("finalizers", "ownerReferences", "managedFields"):
        if not meta.get(name):
            meta.pop(name, None)


_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def stamp(meta: Obj, *, now: datetime, rng: random.Random, generations: bool) -> None:
    """Make the metadata of a new object its own: identity and birth come from the server alone."""
    for name in (*_SERVER_OWNED, "resourceVersion"):
        meta.pop(name, None)
    meta["uid"] = uid(rng)
    meta["creationTimestamp"] = timestamp(now)
    if generations:
        meta["generation"] = 1
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated(meta["generateName"], rng)


def carry(meta: Obj, old: Obj) -> None:
    """Give changed metadata what only the server decides, from the stored object."""
    for name in (*_SERVER_OWNED, "name", "namespace", "generateName", "resourceVersion"):
        if name in old:
            meta[name] = old[name]
        else:
            meta.pop(name, None)


def check_namespace(meta: Obj, namespace: str) -> None:
    """Raises StatusError 400 when the object names another namespace than the request; fills it in."""
    if meta.get("namespace", "") not in ("", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
