"""The default roles and bindings of a cluster, as far as this API serves their resources."""

from typing import Any

from metal.apiserver.auth.access import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from metal.apiserver.auth.authorizer import CLUSTER_BINDINGS, CLUSTER_ROLES, GROUP
from metal.apiserver.machinery.records import ResourceKey

Obj = dict[str, Any]

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""Annotation: with "false" a role is not repaired at the next start."""
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_KINDS = ["configmaps", "serviceaccounts"]
_EVENTS = ["", "events.k8s.io"]


def _rule(verbs: list[str], groups: list[str], resources: list[str]) -> Obj:
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def _paths(*paths: str) -> Obj:
    return {"verbs": ["get"], "nonResourceURLs": list(paths)}


_AUTHN, _AUTHZ = "authentication.k8s.io", "authorization.k8s.io"
_RULES: dict[str, list[Obj]] = {
    "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "system:discovery": [
        _paths("/api", "/api/*", "/apis", "/apis/*", *_HEALTH[:3], "/openapi", "/openapi/*", *_HEALTH[3:])
    ],
    "system:public-info-viewer": [_paths(*_HEALTH)],
    "system:monitoring": [
        _paths("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*")
    ],
    "system:basic-user": [
        _rule(["create"], [_AUTHZ], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        _rule(["create"], [_AUTHN], ["selfsubjectreviews"]),
    ],
    "system:auth-delegator": [
        _rule(["create"], [_AUTHN], ["tokenreviews"]),
        _rule(["create"], [_AUTHZ], ["subjectaccessreviews"]),
    ],
    "system:aggregate-to-view": [
        _rule(_READ, [""], [*_KINDS, "namespaces", "namespaces/status"]),
        _rule(_READ, _EVENTS, ["events"]),
    ],
    "system:aggregate-to-edit": [
        _rule(_READ, [""], ["secrets"]),
        _rule(["impersonate"], [""], ["serviceaccounts"]),
        _rule(_WRITE, [""], [*_KINDS, "secrets"]),
        _rule(["create"], [""], ["serviceaccounts/token"]),
        _rule(_WRITE, _EVENTS, ["events"]),
        _rule([*_WRITE, *_READ], ["coordination.k8s.io"], ["leases"]),
    ],
    "system:aggregate-to-admin": [
        _rule(["create"], [_AUTHZ], ["localsubjectaccessreviews"]),
        _rule([*_WRITE, *_READ], [GROUP], ["rolebindings", "roles"]),
    ],
}
_COLLECTED_BY = {
    "system:aggregate-to-view": "view",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-admin": "admin",
    "view": "edit",
    "edit": "admin",
}
_BOUND = {
    "cluster-admin": [MASTERS],
    "system:discovery": [AUTHENTICATED],
    "system:basic-user": [AUTHENTICATED],
    "system:public-info-viewer": [AUTHENTICATED, UNAUTHENTICATED],
    "system:monitoring": ["system:monitoring"],
}


def label_of(role: str) -> str:
    """The label of roles that the ClusterRole `role` aggregates."""
    return f"{GROUP}/aggregate-to-{role}"


def bootstrap() -> list[tuple[ResourceKey, Obj]]:
    """Every object that must exist, without the metadata that the server sets. Roles precede bindings."""
    plain = [(CLUSTER_ROLES, _role(name, rules)) for name, rules in _RULES.items()]
    collecting = [(CLUSTER_ROLES, _aggregate(name)) for name in ("view", "edit", "admin")]
    return plain + collecting + [(CLUSTER_BINDINGS, _binding(role, groups)) for role, groups in _BOUND.items()]


def _object(kind: str, name: str) -> Obj:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if name in _COLLECTED_BY and kind == "ClusterRole":
        labels[label_of(_COLLECTED_BY[name])] = "true"
    metadata = {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


def _role(name: str, rules: list[Obj]) -> Obj:
    return {**_object("ClusterRole", name), "rules": rules}


def _aggregate(name: str) -> Obj:
    selectors = [{"matchLabels": {label_of(name): "true"}}]
    return {**_object("ClusterRole", name), "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": None}


def _binding(role: str, groups: list[str]) -> Obj:
    subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups]
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return {**_object("ClusterRoleBinding", role), "subjects": subjects, "roleRef": ref}
