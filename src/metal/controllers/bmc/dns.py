"""Creates and updates the DNS record of a BMC from the template: an object of any kind, owned by its BMC."""

from typing import Any

import msgspec

from metal.api.bmc import BMC, DNSRecordRef
from metal.api.meta import Model, ObjectMeta
from metal.controllers.bmc.dns_template import FieldEmpty, Template
from metal.controllers.bmc.enrolment.servers import MANAGER
from metal.controllers.bmc.scope import Scope
from metal.kube.client.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound
from metal.kube.client.resources import Resource, split_api_version
from metal.kube.meta.conditions import find
from metal.kube.meta.ownership import controller_of, controller_reference, is_controlled_by

CONDITION = "DNSRecordApplied"
_VERBS = ("get", "create", "patch", "delete")


class Record(Model, frozen=True, kw_only=True):
    """The fields of a DNS record that every kind has."""

    metadata: ObjectMeta = ObjectMeta()


class _Refused(Exception):
    """The record cannot be written. str() is a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def ensure_record(scope: Scope) -> None:
    """Apply the record if it or its content changed, and report the result. A failure never blocks the BMC.

    When the record's name changed, the former record is deleted afterwards. Without a template records stay unchanged.
    """
    template = scope.deps.template
    if template is None:
        _remove_condition(scope)
        return
    try:
        record = await _write(scope, template)
    except FieldEmpty as exc:
        scope.report(CONDITION, False, "FieldEmpty", f"no DNS record is written: {exc}")
    except _Refused as exc:
        scope.report(CONDITION, False, exc.reason, str(exc))
    except ApiError as exc:
        scope.report(CONDITION, False, "ApplyFailed", f"the API did not accept the DNS record: {exc.message}")
    else:
        scope.report(CONDITION, True, "RecordApplied", f"{record} matches the template")


async def _write(scope: Scope, template: Template) -> str:
    """Write the record; returns its kind and name. Raises FieldEmpty, _Refused and ApiError."""
    bmc: BMC = msgspec.structs.replace(scope.obj, status=scope.status)
    body = template.render(bmc, scope.deps.settings.namespace)
    ref, former = DNSRecordRef(api_version=template.api_version, kind=template.kind), scope.status.dns_record
    kind = await _kind(scope, ref)
    ref = _complete(scope, kind, body, ref)
    try:
        await _apply(scope, kind, body, ref)
        if former is not None and _identity(former) != _identity(ref):
            await _delete(scope, former)
    except Forbidden as exc:
        raise _Refused("Forbidden", _missing_permission(kind, ref, exc)) from exc
    scope.set(dns_record=ref)
    return _describe(ref)


async def _kind(scope: Scope, ref: DNSRecordRef) -> Resource:
    try:
        return await scope.deps.discovery.find(ref.api_version, ref.kind, Record)
    except NotFound:
        raise _not_installed(ref) from None


def _complete(scope: Scope, kind: Resource, body: dict[str, Any], ref: DNSRecordRef) -> DNSRecordRef:
    """Add the namespace, if the kind is namespaced, and the owner to the body; returns the record's reference."""
    metadata = {**body["metadata"], "ownerReferences": [controller_reference(scope.obj, scope.kind)]}
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = scope.deps.settings.namespace
    body["metadata"] = metadata
    namespace = metadata["namespace"] if kind.namespaced else ""
    return msgspec.structs.replace(ref, namespace=namespace, name=metadata["name"])


async def _apply(scope: Scope, kind: Resource, body: dict[str, Any], ref: DNSRecordRef) -> None:
    client = scope.context.client
    found = await _read(scope, kind, ref)
    if found is not None:
        _check_owner(scope, found, ref)
        if scope.memo.record == (body, found.metadata.resource_version):
            return
    try:
        applied: Record = await client.apply(kind, body, manager=MANAGER)
    except NotFound as exc:
        raise _missing(scope, ref, exc) from exc
    except (Invalid, BadRequest) as exc:
        text = f"the API refuses {_describe(ref)}: {exc.message}; correct the template, or the fields of the BMC"
        raise _Refused("Invalid", text) from exc
    scope.memo.record = (body, applied.metadata.resource_version)


async def _read(scope: Scope, kind: Resource, ref: DNSRecordRef) -> Record | None:
    try:
        found: Record = await scope.context.client.get(kind, ref.name, ref.namespace)
    except NotFound:
        return None
    return found


def _check_owner(scope: Scope, found: Record, ref: DNSRecordRef) -> None:
    owner = controller_of(found)
    if owner is None or is_controlled_by(found, scope.obj):
        return
    other = "another BMC of this name" if owner.name == scope.name else f"{owner.kind} {owner.name}"
    text = f"{_describe(ref)} is owned by {other}: use {{{{ .Name }}}} in metadata.name of the template, or delete it"
    raise _Refused("OwnedByAnother", text)


def _missing(scope: Scope, ref: DNSRecordRef, exc: NotFound) -> _Refused:
    if exc.details.get("kind") == "namespaces":
        return _Refused("NamespaceNotFound", f"namespace {ref.namespace} of {_describe(ref)} does not exist: create it")
    scope.deps.discovery.forget(ref.api_version, ref.kind)
    return _not_installed(ref)


async def _delete(scope: Scope, former: DNSRecordRef) -> None:
    """Delete the record of a former name or kind, if this BMC still owns it."""
    try:
        kind = await scope.deps.discovery.find(former.api_version, former.kind, Record)
    except NotFound:
        return  # the records of a kind are deleted with the kind
    found = await _read(scope, kind, former)
    if found is None or not is_controlled_by(found, scope.obj):
        return
    try:
        await scope.context.client.delete(kind, former.name, former.namespace, uid=found.metadata.uid)
    except Forbidden as exc:
        raise _Refused("Forbidden", _missing_permission(kind, former, exc)) from exc


def _remove_condition(scope: Scope) -> None:
    """Without a template no condition is reported."""
    if find(scope.status.conditions, CONDITION) is not None:
        scope.set(conditions=tuple(c for c in scope.status.conditions if c.type != CONDITION))


def _not_installed(ref: DNSRecordRef) -> _Refused:
    text = f"the API has no kind {ref.kind} in {ref.api_version}: install its CRD, or correct the template"
    return _Refused("KindNotInstalled", text)


def _missing_permission(kind: Resource, ref: DNSRecordRef, exc: Forbidden) -> str:
    role = f"a Role in namespace {ref.namespace}" if ref.namespace else "a ClusterRole"
    rule = f'{{apiGroups: ["{kind.group}"], resources: [{kind.plural}], verbs: [{", ".join(_VERBS)}]}}'
    problem = f"the manager may not write {_describe(ref)}"
    return f"{problem}: give its service account {role} with the rule {rule} ({exc.message})"


def _identity(ref: DNSRecordRef) -> tuple[str, str, str, str]:
    """Identifies the object, independent of the version of its kind."""
    return split_api_version(ref.api_version)[0], ref.kind, ref.namespace, ref.name


def _describe(ref: DNSRecordRef) -> str:
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"
