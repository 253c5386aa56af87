"""Options of a request, from its query and, for deletes, its body."""

from collections.abc import Mapping
from typing import Any

from metal.apiserver import status
from metal.apiserver.causes import Cause, not_supported
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
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise status.bad_request(f"{name}: {text!r} is not a whole number")
    return int(text)


def _dry_run(values: list[str], kind: str) -> bool:
    for value in values:
        if value and value != "All":
            raise _refuse(kind, not_supported("dryRun", value, ["All"]))
    return "All" in values


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
    """Options of list. Raises StatusError 400."""
    return ListOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=_number(query, "limit"),
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
    )


def watching(query: Query) -> WatchOptions:
    """Options of watch. Raises StatusError 400."""
    return WatchOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents"),
        timeout=float(_number(query, "timeoutSeconds")) or None,
    )


def deleting(query: Query, body: Any) -> DeleteOptions:
    """Options of delete: those of the body where there is one, else those of the query. Raises StatusError 400."""
    if body is not None and not isinstance(body, dict):
        raise status.bad_request("DeleteOptions: expected an object")
    given: dict[str, Any] = body or {}
    if given.get("kind") not in (None, "", "DeleteOptions"):
        raise status.bad_request(f"the body of a delete is DeleteOptions, not {given['kind']!r}")
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
    if not text:
        orphan = given.get("orphanDependents") is True or flag(query, "orphanDependents")
        return Propagation.ORPHAN if orphan else None
    if text not in tuple(Propagation):
        allowed = [choice.value for choice in Propagation]
        raise _refuse("DeleteOptions", not_supported("propagationPolicy", str(text), allowed))
    return Propagation(text)
