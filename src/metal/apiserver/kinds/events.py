"""Events: one collection, served as v1 and as events.k8s.io/v1, converted and validated as kube-apiserver does."""

import re
from dataclasses import replace
from typing import Any

from metal.apiserver.kinds.builtin_schemas import EVENT
from metal.apiserver.kinds.typed import typed
from metal.apiserver.machinery.causes import Cause, invalid, required
from metal.apiserver.machinery.columns import Column
from metal.apiserver.machinery.resources import Resource, Strategy
from metal.apiserver.printing.builtin_columns import builtin_columns
from metal.kube.meta.names import is_subdomain

Obj = dict[str, Any]

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Fields by their names in v1, and in events.k8s.io/v1."""
_CORE = {new: old for old, new in _NAMES.items()}
_ALWAYS = ("reportingComponent", "reportingInstance")
"""Strings that v1 encodes even when they are empty."""
_BLANK: Obj = {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}
_BLANK |= dict.fromkeys(_ALWAYS, "")
_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_TYPES = ("Normal", "Warning")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_KEPT = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "action")
_KEPT_TOO = ("eventTime", "related", "reportingComponent", "reportingInstance")
_SHOWN = {_NAMES.get(name, name): schema for name, schema in EVENT["properties"].items()}


def event_kinds() -> list[Resource]:
    """The resource `events` of the core group, and the same events of events.k8s.io."""
    core = _core_events()
    return [core, _new_events(core)]


def _core_events() -> Resource:
    return Resource(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        list_kind="EventList",
        schema=typed("Event", "v1", EVENT),
        openapi=EVENT,
        short_names=("ev",),
        columns=builtin_columns("Event"),
        custom=False,
        strategy=Strategy(
            prepare=_prepare,
            check=check_core,
            blank=_BLANK,
            unconditional=True,
            generations=False,
            selectable=_selectable("involvedObject", "reportingComponent", "source"),
            selected=_selected,
        ),
    )


def _new_events(core: Resource) -> Resource:
    shown = {**EVENT, "properties": _SHOWN}
    return replace(
        core,
        group="events.k8s.io",
        schema=typed("Event", "v1", shown),
        openapi=shown,
        columns=tuple(_through(column) for column in core.columns),
        shares=core,
        show=show,
        keep=keep,
        strategy=replace(
            core.strategy,
            prepare=_prepare_shown,
            check=check_new,
            blank=show(_BLANK),
            selectable=_selectable("regarding", "reportingController"),
            selected=show,
        ),
    )


def _selectable(about: str, *more: str) -> frozenset[str]:
    """Fields that a field selector may name, beside those of metadata."""
    return frozenset({f"{about}.{name}" for name in _REFERENCE} | {"reason", "type", *more})


def show(obj: Obj) -> Obj:
    """A stored event in the form of events.k8s.io/v1."""
    shown = {_NAMES.get(name, name): value for name, value in obj.items() if value != "" or name not in _ALWAYS}
    return {**shown, "apiVersion": "events.k8s.io/v1"}


def keep(obj: Obj) -> Obj:
    """An event of events.k8s.io/v1 in the form of the store."""
    kept = {_CORE.get(name, name): value for name, value in obj.items()}
    _complete(kept)
    return {**kept, "apiVersion": "v1"}


def _complete(obj: Obj) -> None:
    """Add the empty fields that Go encodes."""
    for name in ("involvedObject", "source"):
        if obj.get(name) is None:
            obj[name] = {}
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(name, None)
    for name in _ALWAYS:
        obj.setdefault(name, "")


def _prepare(obj: Obj, old: Obj | None) -> None:
    _complete(obj)


def _prepare_shown(obj: Obj, old: Obj | None) -> None:
    for name in ("regarding", "deprecatedSource"):
        if obj.get(name) is None:
            obj[name] = {}
    for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"):
        obj.setdefault(name, None)


def _selected(obj: Obj) -> Obj:
    """An event for field selectors: `source` is the reporting component."""
    return {**obj, "source": (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""}


def _through(column: Column) -> Column:
    return replace(column, cell=lambda obj, now: column.cell(keep(dict(obj)), now))


def check_core(obj: Obj, old: Obj | None) -> list[Cause]:
    """Violations of the rules for an event of v1."""
    return _check_both(obj, "reportingComponent")


def check_new(obj: Obj, old: Obj | None) -> list[Cause]:
    """Violations of the rules for an event of events.k8s.io/v1; causes name fields of v1, as on kube-apiserver."""
    event = keep(obj)
    causes = _check_both(event, "reportingController")
    if old is not None:
        return causes + _check_kept(event, keep(old))
    causes += _check_series(event.get("series"))
    if not event.get("eventTime"):
        causes.append(required("eventTime"))
    if event.get("type") not in _TYPES:
        causes.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    old_fashioned = ("firstTimestamp", "lastTimestamp", "count", "source")
    return causes + [invalid(name, "", "needs to be unset") for name in old_fashioned if event.get(name)]


def _check_kept(event: Obj, old: Obj) -> list[Cause]:
    causes = [] if event.get("series") == old.get("series") else _check_series(event.get("series"))
    for name in (*_KEPT, *_KEPT_TOO):
        if event.get(name) != old.get(name):
            field = "reportingController" if name == "reportingComponent" else name
            causes.append(invalid(field, event.get(name), "field is immutable"))
    return causes


def _check_series(series: Obj | None) -> list[Cause]:
    if series is None:
        return []
    causes = [] if series.get("count", 0) >= 2 else [invalid("series.count", "", "should be at least 2")]
    return causes if series.get("lastObservedTime") else [*causes, required("series.lastObservedTime")]


def _check_both(event: Obj, controller: str) -> list[Cause]:
    space, referred = event["metadata"].get("namespace", ""), (event.get("involvedObject") or {}).get("namespace", "")
    elsewhere = invalid("involvedObject.namespace", referred, "does not match event.namespace")
    if not event.get("eventTime"):
        return [] if referred == space or (not referred and space == "default") else [elsewhere]
    causes = [elsewhere] if not referred and space not in ("default", "kube-system") else []
    reporter = event.get("reportingComponent", "")
    if not reporter:
        causes.append(required(controller))
    causes += _check_qualified(reporter, controller)
    for name, limit in _LIMITS.items():
        text = event.get(name) or ""
        if not text and name != "message":
            causes.append(required(name))
        if len(text.encode()) > limit:
            causes.append(invalid(name, "", f"can have at most {limit} characters"))
    return causes


_NAME_RE = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def _check_qualified(name: str, field: str) -> list[Cause]:
    prefix, slash, rest = name.rpartition("/")
    if slash and not is_subdomain(prefix):
        return [invalid(field, name, "prefix part must be a DNS subdomain")]
    if not rest:
        return [invalid(field, name, "name part must be non-empty"), invalid(field, name, _NAME_RULE)]
    return [] if re.fullmatch(_NAME_RE, rest) and len(rest) <= 63 else [invalid(field, name, _NAME_RULE)]


_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_RE}')"
)
