"""Options of a request, from its query and, for deletes, its body."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.machinery import status
from metal.apiserver.machinery.causes import NOT_SUPPORTED, Cause, forbidden, invalid, not_supported, show, too_long
from metal.apiserver.machinery.options import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    Propagation,
    WatchOptions,
    WriteOptions,
)
from metal.apiserver.schema.go_types import json_name

Query = Mapping[str, str]


def flag(query: Query, name: str) -> bool:
    """A boolean of the query, parsed as in Kubernetes: only absence, `false` and `0` are false."""
    return query.get(name, "false").lower() not in ("false", "0")


def _number(query: Query, name: str) -> int:
    text = query.get(name, "0")
    if not _WHOLE.fullmatch(text):
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _DIGITS or not -_RANGE <= int(text) < _RANGE:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return max(0, int(text))


_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)
_RANGE, _DIGITS = 2**63, 100
"""An integer of 64 bits; Python refuses to parse very long ones."""


def _dry_run(values: list[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    return [Cause("dryRun", NOT_SUPPORTED, f'Unsupported value: {show(values)}: supported values: "All"')]


def _given(query: Query, name: str) -> list[str]:
    return [query[name]] if query.get(name) else []


def _manager(name: str) -> list[Cause]:
    if len(name.encode()) > _LONGEST_MANAGER:
        return [too_long("fieldManager", _LONGEST_MANAGER)]
    for position, char in enumerate(name):
        if not char.isprintable():
            return [invalid("fieldManager", name, f"invalid character U+{ord(char):04X} (at position {position})")]
    return []


_VERBS = {"POST": "Create", "PUT": "Update", "PATCH": "Patch"}
_LONGEST_MANAGER = 128
"""Maximum of bytes of the field manager."""


def writing(query: Query, user_agent: str, method: str = "PATCH") -> WriteOptions:
    """Options of create, update, patch and apply; the defaults for other methods. Raises StatusError 422."""
    if method not in _VERBS:
        return WriteOptions()
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation") or FieldValidation.WARN
    causes = [*_manager(manager), *_dry_run(_given(query, "dryRun"))]
    if validation not in tuple(FieldValidation):
        allowed = ["", *sorted(choice.value for choice in FieldValidation)]
        causes.append(not_supported("fieldValidation", str(validation), allowed))
    if causes:
        raise status.invalid(status.Who("meta.k8s.io", kind=f"{_VERBS[method]}Options"), causes)
    return WriteOptions(
        dry_run=query.get("dryRun") == "All",
        manager=manager,
        agent="".join(char for char in user_agent.partition("/")[0] if char.isprintable())[:_LONGEST_MANAGER],
        field_validation=FieldValidation(validation),
        force=flag(query, "force") if "force" in query else None,
    )


def listing(query: Query) -> ListOptions:
    """Options of list. Raises StatusError 400 or 422."""
    _check(_list_faults(query))
    _number(query, "timeoutSeconds")
    return ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=_number(query, "limit"),
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
    )


def watching(query: Query) -> WatchOptions:
    """Options of watch. Raises StatusError 400 or 422."""
    _check(_watch_faults(query))
    return WatchOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, _INITIAL) if query.get(_INITIAL) else None,
        timeout=float(_number(query, "timeoutSeconds")) or None,
    )


_INITIAL, _MATCH, _NEWER = "sendInitialEvents", "resourceVersionMatch", "NotOlderThan"


def _check(found: Iterator[Cause]) -> None:
    if causes := list(found):
        raise status.invalid(status.Who("meta.k8s.io", kind="ListOptions"), causes)


def _list_faults(query: Query) -> Iterator[Cause]:
    match, version = query.get(_MATCH, ""), query.get("resourceVersion", "")
    if match and not version:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and query.get("continue"):
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", "Exact", _NEWER):
        yield not_supported(_MATCH, match, ("Exact", _NEWER, ""))
    if match == "Exact" and version == "0":
        yield forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if query.get(_INITIAL):
        yield forbidden(_INITIAL, "sendInitialEvents is forbidden for list")


def _watch_faults(query: Query) -> Iterator[Cause]:
    match, initial = query.get(_MATCH, ""), query.get(_INITIAL, "")
    if initial and match != _NEWER:
        yield forbidden(_MATCH, f"sendInitialEvents requires setting resourceVersionMatch to {_NEWER}")
    if match and not initial:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match not in ("", _NEWER):
        yield not_supported(_MATCH, match, (_NEWER,))
    if query.get("continue"):
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def deleting(query: Query, body: Any) -> DeleteOptions:
    """Options of delete, from the body if there is one, else from the query. Raises StatusError 400, 422."""
    if body is not None and not isinstance(body, dict):
        raise status.bad_request(f"couldn't get version/kind; json parse error: {_not_an_object(body)}")
    given: dict[str, Any] = body or {}
    if (kind := given.get("kind") or "DeleteOptions") != "DeleteOptions":
        version = given.get("apiVersion") or ""
        message = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise status.bad_request(message)
    preconditions = given.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise status.bad_request(_mistyped(preconditions, "preconditions", "v1.Preconditions"))
    dry = given.get("dryRun") or _given(query, "dryRun")
    if not isinstance(dry, list):
        raise status.bad_request(_mistyped(dry, "dryRun", "[]string"))
    causes = [*_propagation_causes(given, query), *_dry_run([str(value) for value in dry])]
    if causes:
        raise status.invalid(status.Who("meta.k8s.io", kind="DeleteOptions"), causes)
    return DeleteOptions(
        dry_run=bool(dry),
        propagation=_propagation(given, query),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
    )


def _not_an_object(body: Any) -> str:
    return f"json: cannot unmarshal {json_name(body)} into Go value of type DeleteOptions"


def _mistyped(value: Any, name: str, wanted: str) -> str:
    return f"json: cannot unmarshal {json_name(value)} into Go struct field DeleteOptions.{name} of type {wanted}"


_POLICIES = [Propagation.FOREGROUND.value, Propagation.BACKGROUND.value, Propagation.ORPHAN.value, "nil"]


def _policy(given: Mapping[str, Any], query: Query) -> str:
    return str(given.get("propagationPolicy") or query.get("propagationPolicy") or "")


def _orphans(given: Mapping[str, Any], query: Query) -> bool | None:
    if given.get("orphanDependents") is not None:
        return bool(given["orphanDependents"])
    return flag(query, "orphanDependents") if "orphanDependents" in query else None


def _propagation_causes(given: Mapping[str, Any], query: Query) -> list[Cause]:
    policy = _policy(given, query)
    if policy and _orphans(given, query) is not None:
        return [invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")]
    if policy and policy not in tuple(Propagation):
        return [not_supported("propagationPolicy", policy, _POLICIES)]
    return []


def _propagation(given: Mapping[str, Any], query: Query) -> Propagation | None:
    policy = _policy(given, query)
    if policy:
        return Propagation(policy)
    return Propagation.ORPHAN if _orphans(given, query) else None
