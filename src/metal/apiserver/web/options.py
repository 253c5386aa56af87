"""Options of a request, from its query and, for deletes, its body."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver import status
from metal.apiserver.causes import Cause, forbidden, invalid, not_supported
from metal.apiserver.requests import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    Propagation,
    WatchOptions,
    WriteOptions,
)

Query = Mapping[str, str]


def _refuse(kind: str, cause: Cause) -> status.StatusError:
    return status.invalid(status.Who("meta.k8s.io", kind=kind), [cause])


def flag(query: Query, name: str) -> bool:
    """A boolean of the query, read as Kubernetes does: only absence, `false` and `0` are false."""
    return query.get(name, "false").lower() not in ("false", "0")


def _number(query: Query, name: str) -> int:
    text = query.get(name, "") or "0"
    if not _WHOLE.fullmatch(text):
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return max(0, int(text))


_WHOLE = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)


def _dry_run(values: list[str], kind: str) -> bool:
    given = [value for value in values if value]
    if given and given != ["All"]:
        raise _refuse(kind, not_supported("dryRun", given, ["All"]))
    return bool(given)


def writing(query: Query, user_agent: str) -> WriteOptions:
    """Options of create, update, patch and apply. Raises StatusError 400 or 422."""
    manager = query.get("fieldManager", "") or user_agent.partition("/")[0]
    if len(manager) > 128 or not manager.isprintable():
        cause = Cause("fieldManager", "FieldValueTooLong", "Too long: may not be more than 128 printable characters")
        raise _refuse("WriteOptions", cause)
    validation = query.get("fieldValidation") or FieldValidation.WARN
    if validation not in tuple(FieldValidation):
        allowed = [choice.value for choice in FieldValidation]
        raise _refuse("WriteOptions", not_supported("fieldValidation", str(validation), allowed))
    return WriteOptions(
        dry_run=_dry_run([query.get("dryRun", "")], "WriteOptions"),
        manager=manager,
        field_validation=FieldValidation(validation),
        force=flag(query, "force"),
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
    """Options of delete: those of the body where there is one, else those of the query. Raises StatusError 400."""
    if body is not None and not isinstance(body, dict):
        raise status.bad_request("DeleteOptions: expected an object")
    given: dict[str, Any] = body or {}
    if given.get("kind") not in (None, "", "DeleteOptions"):
        told = f'no kind "{given["kind"]}" is registered for version "meta.k8s.io/v1"'
        raise status.bad_request(f'{told} in scheme "pkg/runtime/scheme.go:111"')
    preconditions = given.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise status.bad_request("preconditions: expected an object")
    dry = given.get("dryRun") or [query.get("dryRun", "")]
    if not isinstance(dry, list):
        raise status.bad_request("dryRun: expected a list")
    return DeleteOptions(
        dry_run=_dry_run([str(value) for value in dry], "DeleteOptions"),
        propagation=_propagation(given, query),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
    )


def _propagation(given: Mapping[str, Any], query: Query) -> Propagation | None:
    text = given.get("propagationPolicy") or query.get("propagationPolicy")
    orphans = given.get("orphanDependents")
    if text and orphans is not None:
        raise _refuse(
            "DeleteOptions",
            invalid("propagationPolicy", text, "orphanDependents and deletionPropagation cannot be both set"),
        )
    if not text:
        return Propagation.ORPHAN if orphans is True or flag(query, "orphanDependents") else None
    if text not in tuple(Propagation):
        raise _refuse("DeleteOptions", not_supported("propagationPolicy", str(text), _POLICIES))
    return Propagation(text)


_POLICIES = ("Foreground", "Background", "Orphan", "nil")
