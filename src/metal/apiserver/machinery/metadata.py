"""Metadata that the server sets when an object is created or updated; `object_meta` validates metadata."""

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
    """A version 4 UUID from the injected random source."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def generated(prefix: str, rng: random.Random) -> str:
    """A name from generateName and five random characters, at most 63 characters long."""
    return prefix[:58] + "".join(rng.choice(_SUFFIX_ALPHABET) for _ in range(5))


def drop_empty(meta: Obj) -> None:
    """Drop null, and empty labels, annotations and lists, as a typed decoder does."""
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


def set_creation_fields(meta: Obj, *, now: datetime, rng: random.Random, generations: bool) -> None:
    """Set identity and creation time of a new object, which the server alone decides."""
    for name in (*_SERVER_OWNED, "resourceVersion"):
        meta.pop(name, None)
    meta["uid"] = uid(rng)
    meta["creationTimestamp"] = timestamp(now)
    if generations:
        meta["generation"] = 1
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated(meta["generateName"], rng)


def copy_server_fields(meta: Obj, old: Obj) -> None:
    """Copy the fields that only the server sets from the stored object to the updated metadata."""
    for name in (*_SERVER_OWNED, "name", "namespace", "resourceVersion"):
        if name in old:
            meta[name] = old[name]
        else:
            meta.pop(name, None)


def immutable_changes(meta: Obj, stored: Obj) -> list[Cause]:
    """Causes for fields that only the server sets and that a caller tries to change."""
    return [
        invalid(f"metadata.{name}", meta[name], "field is immutable")
        for name in ("uid", "deletionTimestamp")
        if meta.get(name) and meta[name] != stored.get(name)
    ]


def check_name(meta: Obj, name: str) -> None:
    """Raises StatusError 400 when the object has another name than the request."""
    given = meta.get("name", "")
    if not given:
        message = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise bad_request(message)
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_namespace(meta: Obj, namespace: str) -> None:
    """Raises StatusError 400 when the object has another namespace than the request; sets it when missing."""
    if meta.get("namespace", "") not in ("", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
