"""Columns of `kubectl get` for the built-in kinds."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from metal.apiserver.machinery.columns import Column
from metal.apiserver.printing.table import AGE, NAME, age

Obj = Mapping[str, Any]


def _at(*path: str, missing: Any = "") -> Callable[[Obj, datetime], Any]:
    def read(obj: Obj, now: datetime) -> Any:
        value: Any = obj
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return missing if value is None or value == "" else value

    return read


def _count(*fields: str) -> Callable[[Obj, datetime], Any]:
    return lambda obj, now: sum(len(obj.get(field) or ()) for field in fields)


def _column(name: str, read: Callable[[Obj, datetime], Any], kind: str = "string", priority: int = 0) -> Column:
    return Column(name, kind, read, priority=priority, description=_DESCRIPTIONS.get(name, ""))


_DESCRIPTIONS = {
    "Status": "Phase of the namespace.",
    "Type": "Type of the object.",
    "Data": "Number of entries.",
    "Secrets": "Number of secrets.",
    "Created At": "Time of creation.",
    "Holder": "Holder of the lease.",
    "Last Seen": "Time since the last occurrence.",
    "Reason": "Reason of the event.",
    "Object": "Object of the event.",
    "Message": "Description of the event.",
    "Count": "Number of occurrences.",
    "Role": "Role that is granted.",
    "Users": "Users that the role is granted to.",
    "Groups": "Groups that the role is granted to.",
    "ServiceAccounts": "ServiceAccounts that the role is granted to.",
}


def _last_seen(obj: Obj, now: datetime) -> str:
    series = obj.get("series") or {}
    when = series.get("lastObservedTime") or obj.get("lastTimestamp")
    return age(str(when), now) if when else _first_seen(obj, now)


def _first_seen(obj: Obj, now: datetime) -> str:
    when = obj.get("firstTimestamp") or obj.get("eventTime")
    return age(str(when), now) if when else "<unknown>"


def _involved(obj: Obj, now: datetime) -> str:
    target = obj.get("involvedObject") or {}
    kind, name = str(target.get("kind") or "").lower(), target.get("name")
    return f"{kind}/{name}" if name else kind


def _source(obj: Obj, now: datetime) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _event_count(obj: Obj, now: datetime) -> int:
    return int((obj.get("series") or {}).get("count") or obj.get("count") or 1)


def _event_name(obj: Obj, now: datetime) -> Any:
    return obj.get("metadata", {}).get("name", "")


def _message(obj: Obj, now: datetime) -> str:
    return str(obj.get("message") or "").strip()


_EVENT = (
    _column("Last Seen", _last_seen),
    _column("Type", _at("type")),
    _column("Reason", _at("reason")),
    _column("Object", _involved),
    Column("Subobject", "string", _at("involvedObject", "fieldPath"), priority=1, description="Part of the object."),
    Column("Source", "string", _source, priority=1, description="Reporting component."),
    _column("Message", _message),
    Column("First Seen", "string", _first_seen, priority=1, description="Time since the first occurrence."),
    _column("Count", _event_count, "string", 1),
    Column("Name", "string", _event_name, format="name", priority=1, description="Name of the event."),
)


def _role(obj: Obj, now: datetime) -> str:
    ref = obj.get("roleRef") or {}
    return f"{ref.get('kind', '')}/{ref.get('name', '')}"


def _subjects(kind: str) -> Callable[[Obj, datetime], Any]:
    def read(obj: Obj, now: datetime) -> str:
        found = [subject for subject in obj.get("subjects") or () if subject.get("kind") == kind]
        return ", ".join(
            f"{s.get('namespace', '')}/{s['name']}" if kind == "ServiceAccount" else s["name"] for s in found
        )

    return read


_CREATED = (NAME, Column("Created At", "date", _at("metadata", "creationTimestamp")))
_BINDING = (
    NAME,
    _column("Role", _role),
    AGE,
    _column("Users", _subjects("User"), priority=1),
    _column("Groups", _subjects("Group"), priority=1),
    _column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)

BUILTIN: dict[str, tuple[Column, ...]] = {
    "Namespace": (NAME, _column("Status", _at("status", "phase")), AGE),
    "Secret": (NAME, _column("Type", _at("type", missing="Opaque")), _column("Data", _count("data"), "integer"), AGE),
    "ConfigMap": (NAME, _column("Data", _count("data", "binaryData"), "integer"), AGE),
    "ServiceAccount": (NAME, AGE),
    "Lease": (NAME, _column("Holder", _at("spec", "holderIdentity")), AGE),
    "CustomResourceDefinition": _CREATED,
    "Role": _CREATED,
    "ClusterRole": _CREATED,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Event": _EVENT,
}
"""Columns by kind."""


def builtin_columns(kind: str) -> tuple[Column, ...]:
    """Columns of a built-in kind; Name and Age by default."""
    return BUILTIN.get(kind, (NAME, AGE))
