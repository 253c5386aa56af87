"""The kinds that every API server has, as far as they are needed here."""

import base64
import binascii
from functools import partial
from typing import Any

from metal.apiserver import builtin_schemas as schemas
from metal.apiserver.causes import Cause, forbidden, invalid, required
from metal.apiserver.objectmeta import LABEL_RULE, is_label
from metal.apiserver.resources import ALL_VERBS, Resource, Strategy
from metal.apiserver.schema import Compiled
from metal.apiserver.status import bad_request
from metal.apiserver.tablebuiltin import builtin_columns

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
    _check_texts(obj)
    plain = obj.pop("stringData", None)
    if plain:
        folded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **folded}


def _check_texts(obj: Obj) -> None:
    """Refuses what is no text before the schema would, whose refusals repeat the value."""
    for name in ("data", "stringData"):
        values = obj.get(name) or {}
        if not isinstance(values, dict):
            raise bad_request(f"Secret {name}: expected an object")
        for key, value in values.items():
            if not isinstance(value, str) and not (value is None and name == "data"):
                raise bad_request(f"Secret {name}[{key}]: expected a string; quote it in YAML")


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


_EVENT_FIELDS = frozenset(
    {f"involvedObject.{n}" for n in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")}
    | {"reason", "reportingComponent", "source", "type"}
)


def _core(kind: str, plural: str, schema: Obj, **more: Any) -> Resource:
    more = {"group": "", "singular": kind.lower(), "list_kind": f"{kind}List", "custom": False, **more}
    more["columns"] = builtin_columns(kind)
    return Resource(version="v1", kind=kind, plural=plural, schema=Compiled(schema), openapi=schema, **more)


def builtins(token: Resource) -> list[Resource]:
    """Namespace, Secret, ConfigMap, Event, ServiceAccount and Lease. token: answers serviceaccounts/NAME/token."""
    plain = Strategy(unconditional=True, generations=False)
    of = partial(Strategy, unconditional=True, generations=False)
    namespace = of(
        prepare=_prepare_namespace,
        check=_check_namespace,
        held=_namespace_held,
        deleted=_end_namespace,
        selectable=frozenset({"status.phase"}),
    )
    secret = of(prepare=_prepare_secret, check=_check_secret, selectable=frozenset({"type"}))
    configmap = of(check=partial(_check_frozen, ("data", "binaryData")))
    event = of(check=_check_event, selectable=_EVENT_FIELDS)
    account = {"strategy": plain, "actions": {"token": token}}
    lease = {"group": "coordination.k8s.io", "strategy": plain}
    return [
        _core(
            "Namespace",
            "namespaces",
            schemas.NAMESPACE,
            namespaced=False,
            short_names=("ns",),
            strategy=namespace,
            verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        ),
        _core("Secret", "secrets", schemas.SECRET, strategy=secret),
        _core("ConfigMap", "configmaps", schemas.CONFIGMAP, short_names=("cm",), strategy=configmap),
        _core("Event", "events", schemas.EVENT, short_names=("ev",), strategy=event),
        _core("ServiceAccount", "serviceaccounts", schemas.SERVICE_ACCOUNT, short_names=("sa",), **account),
        _core("Lease", "leases", schemas.LEASE, **lease),
    ]
