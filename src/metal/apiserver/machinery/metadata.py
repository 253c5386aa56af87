"""What becomes of metadata when an object is born or changed. Its rules of form are in `objectmeta`."""

import random
import uuid
from datetime import datetime
from typing import Any

from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.status import bad_request
from metal.kube.meta.clock import timestamp

Obj = dict[str, Any]

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def uid(rng: random.Random) -> str:
    """A version 4 UUID from injected randomness."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def generated(prefix: str, rng: random.Random) -> str:
    """A name made of generateName and five characters, within 63."""
    return prefix[:58] + "".join(rng.choice(_SUFFIX_ALPHABET) for _ in range(5))


def settle(meta: Obj) -> None:
    """Leave out what says nothing, as a typed decoder does: null, and empty labels, annotations and lists."""
    for name in ("labels", "annotations"):
        held = meta.get(name)
        if not held:
            meta.pop(name, None)
        elif isinstance(held, dict):
            meta[name] = {key: "" if value is None else value for key, value in held.items()}
    for name in [name for name in meta if meta[name] is None or meta[name] == []]:
        del meta[name]


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
    for name in (*_SERVER_OWNED, "name", "namespace", "resourceVersion"):
        if name in old:
            meta[name] = old[name]
        else:
            meta.pop(name, None)


def frozen(meta: Obj, stored: Obj) -> list[Cause]:
    """Causes for what the server alone decides and a caller wants otherwise."""
    return [
        invalid(f"metadata.{name}", meta[name], "field is immutable")
        for name in ("uid", "deletionTimestamp")
        if meta.get(name) and meta[name] != stored.get(name)
    ]


def check_name(meta: Obj, name: str) -> None:
    """Raises StatusError 400 when the object does not bear the name of the request."""
    given = meta.get("name", "")
    if not given:
        message = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise bad_request(message)
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_namespace(meta: Obj, namespace: str) -> None:
    """Raises StatusError 400 when the object names another namespace than the request; fills it in."""
    if meta.get("namespace", "") not in ("", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
