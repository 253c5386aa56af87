"""Objects in JSON, and their conversion for another API: UIDs, owner references and generations."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from metal.api.core import CONFIG_MAP, NAMESPACE, SECRET
from metal.api.kinds import Kinds
from metal.api.meta import Kind
from metal.api.names import TENANCY
from metal.kube.client.protocol import Client

Doc = dict[str, Any]
_OWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
"""Fields of metadata that an API sets itself."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STALE = -1
"""A generation that no object has; replaces an outdated observedGeneration, so that it stays outdated."""


@dataclass(frozen=True)
class Identity:
    """Kind, namespace and name of an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Moved:
    """UID and generation of one object at source and target."""

    uid: str
    generation: int
    new_uid: str
    new_generation: int


def raw(kind: Kind[Any]) -> Kind[Any]:
    """The kind with undecoded objects, so that unknown fields are kept."""
    return replace(kind, struct=msgspec.Raw)


def kinds_in_order(kinds: Kinds) -> tuple[Kind[Any], ...]:
    """All kinds that are moved; owners come before what they own, and claims before the Servers that record them."""
    ours = (
        kinds.endpoint, kinds.bmc_secret, kinds.bmc, kinds.claim, kinds.server, kinds.maintenance,
        kinds.readiness_rule, kinds.boot_config, kinds.ipxe, kinds.evidence,
    )  # fmt: skip
    if left := {kind.kind for kind in kinds.all()} - {kind.kind for kind in ours}:
        raise RuntimeError(f"the order of a move does not include {sorted(left)}")
    return tuple(raw(kind) for kind in (NAMESPACE, *ours, SECRET, CONFIG_MAP))


async def fetch(client: Client, kind: Kind[Any]) -> list[Doc]:
    """All objects of a kind. Raises ApiError."""
    return [{**msgspec.json.decode(item), "kind": kind.kind} for item in (await client.list(kind)).items]


def identity(doc: Doc) -> Identity:
    """The identity of an object."""
    meta = doc["metadata"]
    return Identity(doc["kind"], meta.get("namespace", ""), meta["name"])


def without_server_fields(doc: Doc, annotation: str) -> Doc:
    """The object without the fields that an API sets, and without the move's own annotation."""
    meta = {key: value for key, value in doc["metadata"].items() if key not in _OWN}
    notes = {k: v for k, v in meta.pop("annotations", {}).items() if k not in (annotation, _LAST_APPLIED)}
    return {
        **{key: value for key, value in doc.items() if key != "apiVersion"},
        "metadata": {**meta, "annotations": notes},
    }


def converted(doc: Doc, moved: Mapping[str, Moved], annotation: str) -> Doc:
    """The object as it is to be created at the target, see `without_server_fields`.

    References by UID name the new owners. An owner that is not moved is omitted, because the garbage collector would
    delete the object.
    """
    found = without_server_fields(doc, annotation)
    owners = [owner for owner in found["metadata"].pop("ownerReferences", []) if owner["uid"] in moved]
    renamed: Doc = _renamed({**found, "metadata": {**found["metadata"], "ownerReferences": owners}}, moved)
    _rename_in_tenancy(renamed["metadata"]["annotations"], moved)
    return _regenerated(renamed, doc, moved)


def _renamed(value: Any, moved: Mapping[str, Moved]) -> Any:
    """Replace every string that is the UID of a moved object with its new UID."""
    if isinstance(value, str):
        return moved[value].new_uid if value in moved else value
    if isinstance(value, list):
        return [_renamed(item, moved) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, moved) for key, item in value.items()}
    return value


def _rename_in_tenancy(notes: Doc, moved: Mapping[str, Moved]) -> None:
    """Replace the UID of the claim in the copy of the record of tenancy, which is JSON in an annotation."""
    for key in notes:
        if key.endswith(f"/{TENANCY}"):
            with suppress(msgspec.DecodeError):
                notes[key] = msgspec.json.encode(_renamed(msgspec.json.decode(notes[key]), moved)).decode()


def _regenerated(doc: Doc, old: Doc, moved: Mapping[str, Moved]) -> Doc:
    """Adapt observed generations: those of the current generation stay current, all others become outdated."""
    me = moved.get(old["metadata"].get("uid", ""))
    status = doc.get("status")
    if isinstance(status, dict) and me is not None:
        for holder in (status, *status.get("conditions", [])):
            _regenerate(holder, "observedGeneration", me)
    if isinstance(status, dict):
        old_status = old["status"]
        _follow(status.get("bootWindow"), "configGeneration", old_status.get("bootWindow"), "configUID", moved)
        _follow(status.get("refused"), "secretGeneration", old_status.get("refused"), "secretUID", moved)
    _update_generation_annotation(doc, old, moved)
    return doc


def _regenerate(holder: Doc, field: str, of: Moved) -> None:
    if holder.get(field):
        holder[field] = of.new_generation if holder[field] == of.generation else _STALE


def _follow(new: Doc | None, field: str, old: Doc | None, uid: str, moved: Mapping[str, Moved]) -> None:
    if new is not None and old is not None and (of := moved.get(old.get(uid, ""))) is not None:
        _regenerate(new, field, of)


def _update_generation_annotation(doc: Doc, old: Doc, moved: Mapping[str, Moved]) -> None:
    """An IPXEBootConfig has the generation of its ServerBootConfiguration in an annotation."""
    owners = [moved[o["uid"]] for o in old["metadata"].get("ownerReferences", []) if o["uid"] in moved]
    for key, value in doc["metadata"].get("annotations", {}).items():
        if key.endswith("/generation") and owners and value.isdigit():
            same = int(value) == owners[0].generation
            doc["metadata"]["annotations"][key] = str(owners[0].new_generation if same else _STALE)


def digest(doc: Doc) -> str:
    """SHA-256 over the canonical JSON of a converted object; empty values count as absent."""
    return hashlib.sha256(msgspec.json.encode(_canonical(doc), order="deterministic")).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _canonical(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in (None, {}, [], "")}
    return [_canonical(item) for item in value] if isinstance(value, list) else value


def uids(value: Any) -> Iterator[str]:
    """Every string in an object, at any depth."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from uids(item)
