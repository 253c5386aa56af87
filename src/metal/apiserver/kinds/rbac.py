"""Role, ClusterRole, RoleBinding and ClusterRoleBinding (rbac.authorization.k8s.io/v1)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from metal.apiserver.auth.authorizer import GROUP, Authorizer
from metal.apiserver.auth.escalation import Escalation
from metal.apiserver.kinds.typed import typed
from metal.apiserver.machinery.causes import Cause, invalid, not_supported, required
from metal.apiserver.machinery.object_meta import path_name_faults
from metal.apiserver.machinery.resources import Resource, Strategy
from metal.apiserver.printing.builtin_columns import builtin_columns
from metal.kube.meta.names import SUBDOMAIN_RULE, is_subdomain
from metal.kube.meta.selectors import from_object

Obj = dict[str, Any]


def _text(description: str) -> Obj:
    return {"type": "string", "description": description}


def _texts(description: str) -> Obj:
    return {
        "type": "array",
        "items": {"type": "string"},
        "description": description,
        "x-kubernetes-list-type": "atomic",
    }


_RULE: Obj = {
    "type": "object",
    "description": "PolicyRule allows verbs on resources or paths.",
    "properties": {
        "verbs": _texts("Allowed verbs; * is every verb."),
        "apiGroups": _texts("Groups of the resources; the empty string is the core group, * every group."),
        "resources": _texts("Resources and subresources; * is every resource, */status every status."),
        "resourceNames": _texts("Names of the objects; empty is every object."),
        "nonResourceURLs": _texts("Paths that are no resources; a * at the end matches every continuation."),
    },
}
_RULES = {
    "type": "array",
    "items": _RULE,
    "nullable": True,
    "description": "Rules of the role.",
    "x-kubernetes-list-type": "atomic",
}
_SELECTOR = {
    "type": "object",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": _text("Key of the label."),
                    "operator": _text("In, NotIn, ..."),
                    "values": _texts("Values."),
                },
            },
        },
    },
}
_AGGREGATION = {
    "type": "object",
    "nullable": True,
    "description": "Selectors of the ClusterRoles whose rules are aggregated.",
    "properties": {"clusterRoleSelectors": {"type": "array", "items": _SELECTOR}},
}
_REFERENCE: Obj = {
    "type": "object",
    "description": "The role that is granted; immutable.",
    "x-kubernetes-map-type": "atomic",
    "properties": {"apiGroup": _text("Group of the role."), "kind": _text("Kind."), "name": _text("Name.")},
}
_SUBJECT: Obj = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "kind": _text("User, Group or ServiceAccount."),
        "apiGroup": _text("Group of the kind."),
        "name": _text("Name of the subject."),
        "namespace": _text("Namespace of a ServiceAccount."),
    },
}
_ROLE = {
    "type": "object",
    "description": "Role is a set of permissions in a namespace.",
    "properties": {"rules": _RULES},
}
_CLUSTER_ROLE = {
    "type": "object",
    "description": "ClusterRole is a set of permissions in the cluster, or in the namespace of a RoleBinding.",
    "properties": {"rules": _RULES, "aggregationRule": _AGGREGATION},
}
_BINDING = {
    "type": "object",
    "description": "Grants the permissions of a role to subjects.",
    "properties": {
        "subjects": {"type": "array", "items": _SUBJECT, "nullable": True, "x-kubernetes-list-type": "atomic"},
        "roleRef": _REFERENCE,
    },
}


def rbac_kinds(authorizer: Authorizer) -> list[Resource]:
    """The four resources. authorizer: finds the permissions of a writer."""
    guard = Escalation(authorizer)
    of = partial(Strategy, unconditional=True, generations=False, path_names=True)
    role = of(prepare=_prepare_role, check=partial(_check_role, namespaced=True), admit=guard.role)
    cluster_role = of(prepare=_prepare_role, check=partial(_check_role, namespaced=False), admit=guard.role)
    binding = of(prepare=_prepare_binding, check=partial(_check_binding, namespaced=True), admit=guard.binding)
    cluster = of(prepare=_prepare_binding, check=partial(_check_binding, namespaced=False), admit=guard.binding)
    return [
        _resource("Role", _ROLE, role, namespaced=True),
        _resource("ClusterRole", _CLUSTER_ROLE, cluster_role, namespaced=False),
        _resource("RoleBinding", _BINDING, binding, namespaced=True),
        _resource("ClusterRoleBinding", _BINDING, cluster, namespaced=False),
    ]


def _resource(kind: str, schema: Obj, strategy: Strategy, *, namespaced: bool) -> Resource:
    return Resource(
        group=GROUP,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        list_kind=f"{kind}List",
        schema=typed(kind, "v1", schema),
        openapi=schema,
        namespaced=namespaced,
        columns=builtin_columns(kind),
        custom=False,
        strategy=strategy,
    )


def _prepare_role(obj: Obj, old: Obj | None) -> None:
    obj.setdefault("rules", None)


def _prepare_binding(obj: Obj, old: Obj | None) -> None:
    ref = obj.get("roleRef")
    if isinstance(ref, dict) and not ref.get("apiGroup"):
        ref["apiGroup"] = GROUP
    for subject in obj.get("subjects") or ():
        if isinstance(subject, dict) and subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP


def _check_role(obj: Obj, old: Obj | None, *, namespaced: bool) -> list[Cause]:
    causes = []
    for position, rule in enumerate(obj.get("rules") or ()):
        causes += _check_rule(f"rules[{position}]", rule, namespaced=namespaced)
    aggregation = obj.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        message = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        causes.append(required("aggregationRule.clusterRoleSelectors", message))
    return causes + _check_selectors(aggregation or {})


def _check_selectors(aggregation: Mapping[str, Any]) -> list[Cause]:
    causes = []
    for position, selector in enumerate(aggregation.get("clusterRoleSelectors") or ()):
        try:
            from_object(selector)
        except ValueError as fault:
            causes.append(invalid(f"aggregationRule.clusterRoleSelectors[{position}]", selector, str(fault)))
    return causes


def _check_rule(field: str, rule: Mapping[str, Any], *, namespaced: bool) -> list[Cause]:
    causes = []
    if not rule.get("verbs"):
        causes.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    if paths := rule.get("nonResourceURLs"):
        where = f"{field}.nonResourceURLs"
        if namespaced:
            causes.append(invalid(where, paths, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            message = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid(where, paths, message))
        return causes
    if not rule.get("apiGroups"):
        causes.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        causes.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
    return causes


def _check_binding(obj: Obj, old: Obj | None, *, namespaced: bool) -> list[Cause]:
    ref = obj.get("roleRef") or {}
    causes = _check_reference(ref, ["Role", "ClusterRole"] if namespaced else ["ClusterRole"])
    for position, subject in enumerate(obj.get("subjects") or ()):
        causes += _check_subject(f"subjects[{position}]", subject, namespaced=namespaced)
    if old is not None and old.get("roleRef") != obj.get("roleRef"):
        shown = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
        causes.append(invalid("roleRef", shown, "cannot change roleRef"))
    return causes


def _check_reference(ref: Mapping[str, Any], kinds: list[str]) -> list[Cause]:
    causes = []
    if ref.get("apiGroup", GROUP) != GROUP:
        causes.append(not_supported("roleRef.apiGroup", ref["apiGroup"], [GROUP]))
    if ref.get("kind") not in kinds:
        causes.append(not_supported("roleRef.kind", ref.get("kind", ""), kinds))
    name = ref.get("name", "")
    if not name:
        causes.append(required("roleRef.name"))
    return causes + [invalid("roleRef.name", name, fault) for fault in path_name_faults(name)]


def _check_subject(field: str, subject: Mapping[str, Any], *, namespaced: bool) -> list[Cause]:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    causes = [] if name else [required(f"{field}.name")]
    if kind == "ServiceAccount":
        if name and not is_subdomain(name):
            causes.append(invalid(f"{field}.name", name, SUBDOMAIN_RULE))
        if group:
            causes.append(not_supported(f"{field}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            causes.append(required(f"{field}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            causes.append(not_supported(f"{field}.apiGroup", group, [GROUP]))
    else:
        causes.append(not_supported(f"{field}.kind", kind, ["ServiceAccount", "User", "Group"]))
    return causes
