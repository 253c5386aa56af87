"""The ClusterRoles for people and programs of a site: operator, tenant and auditor, each with a label for aggregation.

A site that adds rules for kinds of its own makes an aggregated ClusterRole that selects the label. Ours have no
aggregationRule themselves: when aggregated ClusterRoles are deleted together with those that they select, as an
uninstallation does, the control plane creates some of them again, with their rules, and the next installation fails.
"""

from collections.abc import Iterable
from typing import Any

from metal.api.kinds import Kinds
from metal.api.meta import Kind
from metal.codegen import admin_rights

READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
NAMES = ("site-operator", "tenant", "auditor")
_API = "rbac.authorization.k8s.io"

Obj = dict[str, Any]


def rules(kinds: Kinds) -> dict[str, list[Obj]]:
    """The rules of each role, by its name."""
    read: list[Kind[Any]] = [
        kinds.endpoint, kinds.bmc, kinds.server, kinds.claim, kinds.maintenance, kinds.boot_config,
        kinds.readiness_rule, kinds.evidence, kinds.ipxe,
    ]  # fmt: skip
    owned: list[Kind[Any]] = [
        kinds.endpoint,
        kinds.bmc,
        kinds.bmc_secret,
        kinds.server,
        kinds.maintenance,
        kinds.readiness_rule,
    ]
    events = {"apiGroups": [""], "resources": ["events"], "verbs": READ}
    return {
        "site-operator": [*_rules(owned, [*READ, *WRITE]), *_rules([k for k in read if k not in owned], READ), events],
        "tenant": [
            *_rules([kinds.claim], [*READ, *WRITE]), *_rules([kinds.boot_config, kinds.maintenance], READ), events,
        ],
        "auditor": [*_rules(read, READ), events],
    }  # fmt: skip


def home_rules() -> list[Obj]:
    """What an auditor needs in the manager's namespace to verify evidence."""
    return [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]


def label(kinds: Kinds, role: str) -> str:
    """The label by which an aggregated ClusterRole selects the role."""
    return kinds.key(f"aggregate-to-{role}")


def documents(kinds: Kinds, prefix: str, namespace: str) -> list[Obj]:
    """The roles as objects, without bindings."""
    found: list[Obj] = []
    for role, own in rules(kinds).items():
        meta = {"name": f"{prefix}-{role}", "labels": {label(kinds, role): "true"}}
        found.append({**_head("ClusterRole", meta), "rules": own})
    meta = {"name": f"{prefix}-auditor", "namespace": namespace}
    return [*found, {**_head("Role", meta), "rules": home_rules()}]


def _head(kind: str, metadata: Obj) -> Obj:
    return {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": metadata}


def _rules(kinds: list[Kind[Any]], verbs: list[str]) -> list[Obj]:
    """One rule for each API group."""
    groups = sorted({kind.group for kind in kinds})
    return [
        {"apiGroups": [group], "resources": sorted(k.plural for k in kinds if k.group == group), "verbs": sorted(verbs)}
        for group in groups
    ]


_ROLES_TEXT = """
## Roles for a site

`config/rbac/site_roles.yaml` and the chart have three ClusterRoles without bindings. Bind them:

    kubectl create clusterrolebinding operators --clusterrole metal-operator-site-operator --group operators
    kubectl -n team-a create rolebinding tenants --clusterrole metal-operator-tenant --group team-a
    kubectl create clusterrolebinding auditors --clusterrole metal-operator-auditor --group auditors
    kubectl -n metal-system create rolebinding auditors --role metal-operator-auditor --group auditors

Each has a label for aggregation, `metal.ironcore.dev/aggregate-to-site-operator`, `-tenant` or `-auditor`, so that an
aggregated ClusterRole of the site can collect its rules together with those of other kinds. To give ServerClaims to
everyone who may edit a namespace, label `metal-operator-tenant` with
`rbac.authorization.k8s.io/aggregate-to-edit=true`.

| role | may | binding |
|---|---|---|
"""
_RIGHTS_TEXT = """
## Rights that amount to administration

An account with one of these rights can take over machines, read secrets of tenants, or hide what happened. Give them to
administrators only. Each verb of a row is enough.

| right | what it allows |
|---|---|
"""
_ROLES = (
    (
        "`metal-operator-site-operator`",
        ("manage Endpoints, BMCs, BMCSecrets, Servers, ServerMaintenances and ServerReadinessRules; read "
         "the rest. It is an administrator of all machines"),
        "ClusterRoleBinding",
    ),
    (
        "`metal-operator-tenant`",
        "manage ServerClaims of its namespace; read its boot configurations and maintenances",
        "RoleBinding in each namespace",
    ),
    (
        "`metal-operator-auditor`",
        ("read all kinds except BMCSecrets; in the manager's namespace the ConfigMaps that `metalctl "
         "evidence verify` needs"),
        "ClusterRoleBinding, and a RoleBinding of the Role of this name",
    ),
)  # fmt: skip
"""Role, what it may, how it is bound."""


def page() -> str:
    """The part of docs/rbac.md about these roles, and about rights that amount to administration."""
    return f"{_ROLES_TEXT}{_table(_ROLES)}{_RIGHTS_TEXT}{_table(admin_rights.rows())}"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
