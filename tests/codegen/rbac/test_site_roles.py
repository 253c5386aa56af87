"""The roles of a site, applied to the embedded API: what operators, tenants and auditors may do."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metal.api.core import NAMESPACE
from metal.api.kinds import kinds
from metal.api.meta import Kind
from metal.apiserver.server import EmbeddedAPI
from metal.codegen.admin_rights import RIGHTS, Scope
from metal.codegen.rbac import files
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import system_clock
from tests.codegen.rbac.apply import apply_all
from tests.crds import crds

KINDS = kinds()
METAL = KINDS.bmc.group
_REVIEW: Kind[Any] = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", object, namespaced=False
)
BINDINGS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operators}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metal-operator-site-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: operator}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auditors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metal-operator-auditor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: auditor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: auditors, namespace: metal-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: metal-operator-auditor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: auditor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenants, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metal-operator-tenant}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
"""


@pytest.fixture
async def admin() -> AsyncIterator[Client]:
    """An administrator of an API with the roles and one user for each."""
    api = EmbeddedAPI(None, system_clock)
    await api.start()
    await api.install_crds(crds(KINDS))
    client = api.client()
    for name in ("metal-system", "team-a", "team-b"):
        await client.create(NAMESPACE, {"metadata": {"name": name}})
    await apply_all(client, files()["site_roles.yaml"])
    await apply_all(client, files()["site_roles.yaml"])
    await apply_all(client, BINDINGS)
    yield client
    await api.stop()


async def may(client: Client, user: str, verb: str, kind: Kind[Any] | str, namespace: str = "") -> bool:
    group, plural = ("", kind) if isinstance(kind, str) else (kind.group, kind.plural)
    resource, _, sub = plural.partition("/")
    asked = {"group": group, "resource": resource, "subresource": sub, "verb": verb, "namespace": namespace}
    review = await client.create(_REVIEW, {"spec": {"user": user, "resourceAttributes": asked}})
    return bool(review["status"]["allowed"])


_READABLE: tuple[Kind[Any], ...] = (
    KINDS.endpoint, KINDS.bmc, KINDS.server, KINDS.claim, KINDS.maintenance, KINDS.boot_config, KINDS.readiness_rule,
    KINDS.evidence, KINDS.ipxe,
)  # fmt: skip


async def test_an_auditor_reads_everything_but_passwords_and_writes_nothing(admin: Client) -> None:
    """In the manager's namespace also the ConfigMaps that verify evidence; no Secrets anywhere."""
    for kind in _READABLE:
        assert await may(admin, "auditor", "list", kind), kind.plural
        assert not await may(admin, "auditor", "patch", kind), kind.plural
    assert not await may(admin, "auditor", "get", KINDS.bmc_secret)
    assert not await may(admin, "auditor", "get", "secrets", "metal-system")
    assert await may(admin, "auditor", "list", "configmaps", "metal-system")
    assert not await may(admin, "auditor", "list", "configmaps", "team-a")


async def test_a_tenant_manages_claims_of_its_namespace_only(admin: Client) -> None:
    """It sees the maintenances and boot configurations there, and no cluster-scoped kind."""
    for verb in ("create", "patch", "delete", "watch"):
        assert await may(admin, "tenant", verb, KINDS.claim, "team-a"), verb
        assert not await may(admin, "tenant", verb, KINDS.claim, "team-b"), verb
    assert await may(admin, "tenant", "get", KINDS.maintenance, "team-a")
    refused: tuple[tuple[Kind[Any], str], ...] = (
        (KINDS.maintenance, "create"), (KINDS.boot_config, "patch"), (KINDS.server, "get"), (KINDS.bmc, "create"),
        (KINDS.bmc_secret, "get"), (KINDS.evidence, "delete"), (KINDS.endpoint, "create"),
    )  # fmt: skip
    for kind, verb in refused:
        assert not await may(admin, "tenant", verb, kind, "team-a"), (verb, kind.plural)
    status = Kind[Any](KINDS.claim.group, "v1alpha1", "ServerClaim", "serverclaims/status", object, namespaced=True)
    for verb in ("patch", "update"):
        assert not await may(admin, "tenant", verb, status, "team-a"), verb


async def test_an_operator_manages_machines_and_neither_claims_nor_evidence(admin: Client) -> None:
    """Status is written by the manager only."""
    managed: tuple[Kind[Any], ...] = (
        KINDS.endpoint, KINDS.bmc, KINDS.bmc_secret, KINDS.server, KINDS.maintenance, KINDS.readiness_rule,
    )  # fmt: skip
    for kind in managed:
        assert await may(admin, "operator", "create", kind), kind.plural
        assert await may(admin, "operator", "delete", kind), kind.plural
    refused: tuple[tuple[Kind[Any], str], ...] = (
        (KINDS.claim, "patch"), (KINDS.evidence, "delete"), (KINDS.boot_config, "create"),
    )  # fmt: skip
    for other, verb in refused:
        assert not await may(admin, "operator", verb, other, "team-a"), (verb, other.plural)
    assert not await may(admin, "operator", "get", "secrets", "metal-system")
    status = Kind[Any](KINDS.server.group, "v1alpha1", "Server", "servers/status", object)
    assert not await may(admin, "operator", "patch", status)


async def test_a_site_collects_the_rules_by_label(admin: Client) -> None:
    """An aggregated ClusterRole of the site has the tenant's rules and those of another kind."""
    collected = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: team}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{"{KINDS.key("aggregate-to-tenant")}": "true"}}}}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: team, namespace: team-b}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: team}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: team}}]
"""
    assert not await may(admin, "team", "create", KINDS.claim, "team-b")
    await apply_all(admin, collected)
    for _ in range(1000):  # the API collects the rules in the background
        if await may(admin, "team", "create", KINDS.claim, "team-b"):
            return
        await asyncio.sleep(0)
    raise AssertionError("the rules were not collected")


_PLACES = {
    Scope.EVERYWHERE: ("", "team-a"), Scope.HOME: ("metal-system",), Scope.ENFORCING: ("metal-system",),
    Scope.TENANT: ("team-a", "team-b"), Scope.OTHER: ("team-b",),
}  # fmt: skip
"""The namespaces in which no right of this scope may be held; the tenant's own is team-a."""


@pytest.mark.parametrize("user", ["tenant", "auditor"])
async def test_tenants_and_auditors_have_no_right_that_amounts_to_administration(admin: Client, user: str) -> None:
    """Each verb on each resource of the table is asked of the API, in the namespaces where it would matter."""
    for right in RIGHTS:
        for verb, plural, namespace in itertools.product(right.verbs, right.resources, _PLACES[right.scope]):
            kind = Kind[Any](right.group, "v1", "", plural, object)
            assert not await may(admin, user, verb, kind, namespace), (verb, plural, namespace)


def test_each_verb_that_amounts_to_administration_has_its_equals_beside_it() -> None:
    """A role that gives `update` instead of `patch` is no smaller."""
    for right in RIGHTS:
        for one, other in (("patch", "update"), ("delete", "deletecollection"), ("list", "get"), ("list", "watch")):
            assert one not in right.verbs or other in right.verbs, right.text
        assert "update" not in right.verbs or "patch" in right.verbs, right.text


@pytest.mark.parametrize(
    ("group", "resource", "verbs"),
    [
        *((METAL, name, "create patch update") for name in ("bmcs", "servers", "endpoints", "servermaintenances")),
        *((METAL, name, "patch update") for name in ("bmcs/status", "servers/status", "endpoints/status")),
        *((METAL, name, "patch update") for name in ("serverclaims/status", "sanitizationevidences/status")),
        (METAL, "bmcsecrets", "get list watch patch update"),
        (METAL, "serverclaims", "patch update delete deletecollection"),
        (METAL, "serverbootconfigurations", "create patch update"),
        ("boot.ironcore.dev", "ipxebootconfigs", "create patch update"),
        (METAL, "sanitizationevidences", "patch update delete deletecollection"),
        ("", "serviceaccounts/token", "create"),
        ("", "pods", "create patch update"),
        ("", "pods/exec", "create get"),
        *(("apps", name, "create patch update") for name in ("deployments", "statefulsets", "daemonsets")),
        ("batch", "jobs", "create patch update"),
        ("rbac.authorization.k8s.io", "clusterroles", "bind escalate"),
        ("rbac.authorization.k8s.io", "roles", "bind escalate"),
        *(("", name, "impersonate") for name in ("users", "groups", "serviceaccounts")),
    ],
)
def test_the_page_has_every_verb_that_amounts_to_administration(group: str, resource: str, verbs: str) -> None:
    """docs/rbac.md names the verbs, one row for each group of resources."""
    page = (Path(__file__).parents[3] / "docs/rbac.md").read_text()
    rows = [right for right in RIGHTS if right.group == group and resource in right.resources]
    assert set(verbs.split()) <= {verb for right in rows for verb in right.verbs}
    for right in rows:
        assert f"| {right.text} | {right.allows} |" in page
