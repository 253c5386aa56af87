"""The kinds that every API server has, as far as they are needed here."""

import base64
import binascii
from functools import partial
from typing import Any

from metal.apiserver import builtin_schemas as schemas
from metal.apiserver.causes import Cause, forbidden, invalid, required
from metal.apiserver.objectmeta import LABEL_RULE, is_label
from metal.apiserver.resources import Resource, Strategy
from metal.apiserver.schema import Compiled

Obj = dict[str, Any]

SECRET_LIMIT = 1024 * 1024


def _prepare_namespace(obj: Obj, old: Obj | None) -> None:
    if old is None:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")
    else:
        obj["spec"], obj["status"] = old.get("spec", {}), old.get("status", {})


def _check_namespace(obj: Obj, old: Obj | None) -> list[Cause]:
    name = obj["metadata"].get("name", "")
    return [] if is_label(name) else [invalid("metadata.name", name, LABEL_RULE)]


def _end_namespace(obj: Obj) -> None:
    obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}


def _namespace_held(obj: Obj) -> bool:
    return bool(obj.get("spec", {}).get("finalizers"))


def _prepare_secret(obj: Obj, old: Obj | None) -> None:
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        data = obj.get("data") or {}
        folded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        obj["data"] = {**data, **folded}


def _check_secret(obj: Obj, old: Obj | None) -> list[Cause]:
    data = obj.get("data") or {}
    causes = []
    size = 0
    for key, value in data.items():
        try:
            size += len(base64.b64decode(value or "", validate=True))
        except (binascii.Error, ValueError):
            causes.append(Cause(f"data[{key}]", "FieldValueInvalid", "Invalid value: not base64"))
    if size > SECRET_LIMIT:
        causes.append(Cause("data", "FieldValueTooLong", f"Too long: may not be more than {SECRET_LIMIT} bytes"))
    if old is not None and old.get("type") != obj.get("type"):
        causes.append(invalid("type", obj.get("type"), "field is immutable"))
    return causes + _check_frozen(("data",), obj, old)


def _check_frozen(fields: tuple[str, ...], obj: Obj, old: Obj | None) -> list[Cause]:
    if old is None or old.get("immutable") is not True:
        return []
    told = "field is immutable when `immutable` is set"
    causes = [forbidden(name, told) for name in fields if obj.get(name) != old.get(name)]
    return causes if obj.get("immutable") is True else [forbidden("immutable", told), *causes]


def _check_event(obj: Obj, old: Obj | None) -> list[Cause]:
    space = obj["metadata"].get("namespace", "")
    told = (obj.get("involvedObject") or {}).get("namespace", "")
    if told == space or (not told and space == "default"):
        return []
    if not obj.get("involvedObject"):
        return [required("involvedObject.namespace")]
    return [invalid("involvedObject.namespace", told, "does not match event.namespace")]


_COLUMN_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_EVENT_FIELDS = frozenset(
    {f"involvedObject.{n}" for n in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")}
    | {"reason", "reportingComponent", "source", "type"}
)


def _column(name: str, path: str, kind: str = "string", priority: int = 0) -> Obj:
    return {"name": name, "type": kind, "jsonPath": path, "priority": priority}


def _core(kind: str, plural: str, schema: Obj, **more: Any) -> Resource:
    more = {"group": "", "singular": kind.lower(), "list_kind": f"{kind}List", "custom": False, **more}
    return Resource(version="v1", kind=kind, plural=plural, schema=Compiled(schema), openapi=schema, **more)


def builtins() -> list[Resource]:
    """Namespace, Secret, ConfigMap, Event, ServiceAccount and Lease."""
    plain = Strategy(unconditional=True, generations=False)
    of = partial(Strategy, unconditional=True, generations=False)
    return [
        _core(
            "Namespace", "namespaces", schemas.NAMESPACE, namespaced=False, short_names=("ns",), status=False,
            columns=(_column("Status", ".status.phase"), _COLUMN_AGE),
            strategy=of(prepare=_prepare_namespace, check=_check_namespace, held=_namespace_held,
                        deleted=_end_namespace, selectable=frozenset({"status.phase"})),
        ),
        _core(
            "Secret", "secrets", schemas.SECRET, columns=(_column("Type", ".type"), _COLUMN_AGE),
            strategy=of(prepare=_prepare_secret, check=_check_secret, selectable=frozenset({"type"})),
        ),
        _core(
            "ConfigMap", "configmaps", schemas.CONFIGMAP, short_names=("cm",), columns=(_COLUMN_AGE,),
            strategy=of(check=partial(_check_frozen, ("data", "binaryData"))),
        ),
        _core(
            "Event", "events", schemas.EVENT, short_names=("ev",),
            columns=(
                _column("Last Seen", ".lastTimestamp", "date"), _column("Type", ".type"), _column("Reason", ".reason"),
                _column("Kind", ".involvedObject.kind"), _column("Object", ".involvedObject.name"),
                _column("Message", ".message"),
            ),
            strategy=of(check=_check_event, selectable=_EVENT_FIELDS),
        ),
        _core("ServiceAccount", "serviceaccounts", schemas.SERVICE_ACCOUNT, short_names=("sa",),
              columns=(_COLUMN_AGE,), strategy=plain),
        _core("Lease", "leases", schemas.LEASE, group="coordination.k8s.io",
              columns=(_column("Holder", ".spec.holderIdentity"), _COLUMN_AGE), strategy=plain),
    ]  # fmt: skip
