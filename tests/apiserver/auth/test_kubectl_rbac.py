"""kubectl and who may do what: roles, bindings, tokens, impersonation, events; also in versions that send protobuf."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.apiserver.kubectl import Cluster, cluster

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl")]


@pytest.fixture
async def k(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A fresh API and kubectl."""
    async with cluster(tmp_path) as made:
        yield made


async def test_roles_and_bindings_are_created_and_shown(k: Cluster) -> None:
    """create role, clusterrole, rolebinding and clusterrolebinding; get shows kubectl's columns."""
    await k.ok("create", "role", "reader", "--verb=get,list", "--resource=configmaps,secrets")
    await k.ok("create", "clusterrole", "auditor", "--verb=get", "--non-resource-url=/metrics")
    await k.ok("create", "clusterrole", "all", "--aggregation-rule=example.org/all=true")
    await k.ok("create", "rolebinding", "b", "--role=reader", "--user=bob", "--serviceaccount=default:sa")
    await k.ok("create", "clusterrolebinding", "c", "--clusterrole=auditor", "--group=staff")

    assert (await k.ok("get", "role")).lines[0] == ["NAME", "CREATED", "AT"]
    shown = (await k.ok("get", "rolebinding", "-o", "wide")).lines
    assert shown[0] == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
    assert [shown[1][0], shown[1][1], *shown[1][3:]] == ["b", "Role/reader", "bob", "default/sa"]
    described = (await k.ok("describe", "role", "reader")).out
    assert "configmaps  []                 []              [get list]" in described


async def test_can_i_answers_for_others(k: Cluster) -> None:
    """auth can-i --as asks the authorizer as that user and lists the permissions of that user."""
    await k.ok("create", "rolebinding", "b", "--clusterrole=view", "--user=bob")

    yes = await k.ok("auth", "can-i", "list", "configmaps", "--as=bob")
    no = await k.run("auth", "can-i", "create", "configmaps", "--as=bob")
    listed = await k.ok("auth", "can-i", "--list", "--as=bob")

    assert (yes.out, no.out, no.code) == ("yes\n", "no\n", 1)
    assert ["configmaps", "[]", "[]", "[get", "list", "watch]"] in listed.lines
    assert "system:authenticated" in (await k.ok("auth", "whoami", "--as=bob")).out


async def test_acting_as_somebody_is_held_to_his_roles(k: Cluster) -> None:
    """get --as prints the refusal of kube-apiserver."""
    refused = await k.run("get", "secrets", "--as=bob")

    assert refused.err == (
        'Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" in API group '
        '"" in the namespace "default"\n'
    )


async def test_tokens_are_created_and_used(k: Cluster) -> None:
    """create token prints a token that kubectl can use at once, with the rights of the account."""
    await k.ok("create", "serviceaccount", "sa")
    token = (await k.ok("create", "token", "sa", "--duration=10m")).out.strip()
    await k.ok("create", "rolebinding", "b", "--clusterrole=edit", "--serviceaccount=default:sa")

    # The administrator's own token of the kubeconfig would win over --token, so the file is left out.
    config = k.api.kubeconfig.read_text()
    mine = k.home / "config"
    mine.write_text(config.replace((k.api.kubeconfig.parent / "tokens.csv").read_text().split(",")[0], token))
    me = {"KUBECONFIG": str(mine)}
    assert "system:serviceaccount:default:sa" in (await k.ok("auth", "whoami", **me)).out
    await k.ok("create", "configmap", "c", "--from-literal=a=1", **me)
    refused = await k.run("get", "namespaces", **me)
    assert "cannot list resource" in refused.err


async def test_events_are_listed(k: Cluster) -> None:
    """kubectl events and get events --field-selector."""
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "ConfigMap", "name": "c", "namespace": "default", "apiVersion": "v1"},
        "reason": "Painted",
        "message": "red",
        "type": "Warning",
        "lastTimestamp": "2020-01-01T00:00:00Z",
    }
    event["lastTimestamp"] = (await k.ok("get", "ns", "default", "-o", "jsonpath={.metadata.creationTimestamp}")).out
    await k.apply(event)

    assert "ConfigMap/c" in (await k.ok("events", "--for", "configmap/c")).out
    assert "Painted" in (await k.ok("get", "events", "--field-selector", "reason=Painted,type!=Normal")).out
    assert (await k.run("get", "events", "--field-selector", "involvedObject.name=x")).out == ""
    assert "Painted" in (await k.ok("get", "events.events.k8s.io")).out
