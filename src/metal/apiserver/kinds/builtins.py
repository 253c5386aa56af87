"""The built-in kinds, except those of RBAC."""

from functools import partial
from typing import Any

from metal.apiserver.kinds import builtin_schemas as schemas
from metal.apiserver.kinds.bytes_data import check_config_map, check_secret, prepare_config_map, prepare_secret
from metal.apiserver.kinds.events import event_kinds
from metal.apiserver.kinds.typed import typed
from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.resources import ALL_VERBS, Resource, Strategy
from metal.apiserver.printing.builtin_columns import builtin_columns
from metal.kube.meta.names import LABEL_RULE, is_label

Obj = dict[str, Any]


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


def _prepare_lease(obj: Obj, old: Obj | None) -> None:
    """Drop the fields of coordinated leader election, a feature gate that is off by default."""
    spec = obj.get("spec")
    if isinstance(spec, dict):
        for name in ("strategy", "preferredHolder"):
            spec.pop(name, None)


def _check_lease(obj: Obj, old: Obj | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        causes.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return causes


def _core(kind: str, plural: str, schema: Obj, **more: Any) -> Resource:
    more = {"group": "", "singular": kind.lower(), "list_kind": f"{kind}List", "custom": False, **more}
    more["columns"] = builtin_columns(kind)
    return Resource(version="v1", kind=kind, plural=plural, schema=typed(kind, "v1", schema), openapi=schema, **more)


def builtins(token: Resource) -> list[Resource]:
    """Namespace, Secret, ConfigMap, Event, ServiceAccount and Lease. token: serviceaccounts/NAME/token."""
    plain = Strategy(unconditional=True, generations=False)
    of = partial(Strategy, unconditional=True, generations=False)
    namespace = of(
        prepare=_prepare_namespace,
        check=_check_namespace,
        held=_namespace_held,
        deleted=_end_namespace,
        unowned=frozenset({"spec", "status"}),
        selectable=frozenset({"status.phase"}),
    )
    secret = of(prepare=prepare_secret, check=check_secret, selectable=frozenset({"type"}))
    configmap = of(prepare=prepare_config_map, check=check_config_map)
    account = {"strategy": plain, "actions": {"token": token}}
    # An update of a Lease without resourceVersion is refused: leader elections rely on it.
    lease = {
        "group": "coordination.k8s.io",
        "strategy": Strategy(generations=False, prepare=_prepare_lease, check=_check_lease, blank={"spec": {}}),
    }
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
        *event_kinds(),
        _core("ServiceAccount", "serviceaccounts", schemas.SERVICE_ACCOUNT, short_names=("sa",), **account),
        _core("Lease", "leases", schemas.LEASE, **lease),
    ]
