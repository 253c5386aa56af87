"""Attempts of a user with few permissions to get more, each refused."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from metal.apiserver.auth.access import Attributes
from metal.apiserver.auth.jwt import Signer
from metal.apiserver.cel.rules import RuleError, check_rules, program
from metal.apiserver.machinery.options import DeleteOptions, ListOptions
from metal.apiserver.machinery.records import Record, ResourceKey, encode
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.machinery.structural import Rule, compile_node
from metal.apiserver.machinery.users import User
from metal.apiserver.server import EmbeddedAPI
from metal.apiserver.storage.store import Staged
from metal.kube.client.kubeconfig import from_file
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import Api, crd, running

Obj = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
CRDS = "customresourcedefinitions"


def impostor(group: str, kind: str) -> Obj:
    """A CRD that calls itself as something built in."""
    made = crd(kind, scope="Cluster", short="xx")
    made["spec"]["group"] = group
    made["metadata"]["name"] = f"{made['spec']['names']['plural']}.{group}"
    return made


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("group", "kind"),
    [(RBAC, "ClusterRole"), (RBAC, "Widget"), ("coordination.k8s.io", "Lease"), ("authorization.k8s.io", "Widget")],
)
async def test_a_definition_does_not_take_the_place_of_what_is_built_in(group: str, kind: str) -> None:
    """CRDs in built-in groups are refused: they would remove the check against privilege escalation from roles."""
    async with running() as api:
        before = {(one.group, one.plural): one for one in api.backend.registry}
        with pytest.raises(StatusError, match="is a group of the API itself"):
            await api.create(impostor(group, kind), CRDS)
        assert {(one.group, one.plural): one for one in api.backend.registry} == before


@pytest.mark.looptime
async def test_a_definition_that_came_in_with_a_copy_takes_no_place_either() -> None:
    """Neither the CRD nor its deletion removes the built-in roles or their checks."""
    async with running() as api:
        made = impostor(RBAC, "ClusterRole")
        made["metadata"] |= {"uid": "u", "generation": 2, "creationTimestamp": "2030-01-01T00:00:00Z"}
        made["metadata"]["finalizers"] = ["customresourcecleanup.apiextensions.k8s.io"]
        made["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        key = ResourceKey("apiextensions.k8s.io", CRDS)
        record = Record.parse(key, encode(made))
        staged = Staged(record.key, api.backend.store.reserve(0) + 1, None, record, record)
        await api.backend.store.replace([staged], [staged.for_journal()], {record.key: (staged.version, record)})
        roles = await api.names("clusterroles")

        await api.delete(made["metadata"]["name"], CRDS)
        await asyncio.sleep(5)

        assert made["metadata"]["name"] not in await api.names(CRDS)
        assert await api.names("clusterroles") == roles != []
        found = api.backend.registry.find(RBAC, "v1", "clusterroles")
        assert found is not None
        assert not found.custom


@pytest.mark.looptime
async def test_questions_of_megabytes_are_not_remembered() -> None:
    """Access reviews are open to all users: ten thousand long ones must not fill the memory."""
    async with running() as api:
        known = api.backend.authorizer._decisions
        before = len(known)
        for number in range(5):
            asked = Attributes(User("bob"), "get", "example.org", "widgets", name=f"{number}" + "x" * 1_000_000)
            assert not api.backend.authorizer.decide(asked).allowed
        assert len(known) == before
        api.backend.authorizer.decide(Attributes(User("bob"), "get", "example.org", "widgets"))
        assert len(known) == before + 1


@pytest.mark.looptime
async def test_namespaces_that_do_not_exist_are_not_remembered() -> None:
    """Reviews about many namespaces that do not exist do not fill the memory."""
    async with running() as api:
        before = len(api.backend.authorizer._bindings)
        for number in range(100):
            api.backend.authorizer.decide(Attributes(User("bob"), "get", "", "pods", namespace=f"no-{number}"))
        assert len(api.backend.authorizer._bindings) <= before + 1


@pytest.mark.looptime
async def test_names_in_a_rule_allow_no_deletion_of_a_collection() -> None:
    """Also not one that a field selector narrows to that name: as on a cluster."""
    async with running() as api:
        rule = {"verbs": ["*"], "apiGroups": ["example.org"], "resources": ["widgets"], "resourceNames": ["a"]}
        await api.create({"metadata": {"name": "r"}, "rules": [rule]}, "roles")
        subject = {"kind": "User", "name": "bob"}
        ref = {"kind": "Role", "name": "r"}
        await api.create({"metadata": {"name": "b"}, "roleRef": ref, "subjects": [subject]}, "rolebindings")
        ctx = replace(api.ctx(), user=User("bob"))
        one = ListOptions(fields="metadata.name=a")
        assert (await api.backend.list(ctx, one)).records == []
        with pytest.raises(StatusError, match="cannot deletecollection"):
            await api.backend.delete_collection(ctx, one, DeleteOptions())


@pytest.mark.parametrize("part", ["[" * 6000, '{"a":' * 2000])
def test_a_token_that_is_nested_deeply_is_no_token(part: str) -> None:
    """It is refused like any other forgery; nothing overflows, and nothing is logged for who sends it."""
    text = base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode()
    assert Signer(None).verify(f"{text}.{text}.AAAA") is None


@pytest.fixture
async def copier(tmp_path: Path) -> AsyncIterator[tuple[EmbeddedAPI, aiohttp.ClientSession]]:
    """An API, and a session of a user with permission for all paths, including /snapshot."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text("t1,copier,1\n")
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.listen("127.0.0.1", 0)
    await grant(api, "paths", {"verbs": ["get", "put"], "nonResourceURLs": ["*"]})
    connector = aiohttp.TCPConnector(ssl=from_file(api.kubeconfig).tls or False)
    token = {"Authorization": "Bearer t1"}
    async with aiohttp.ClientSession(api.url, connector=connector, headers=token) as session:
        yield api, session
    await api.stop()


async def grant(api: EmbeddedAPI, name: str, rule: Obj) -> None:
    """A ClusterRole with the rule, bound to the copier."""
    inside = Api(api.backend)
    ref, subject = {"kind": "ClusterRole", "name": name}, {"kind": "User", "name": "copier"}
    await inside.create({"metadata": {"name": name}, "rules": [rule]}, "clusterroles")
    await inside.create({"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}, "clusterrolebindings")


async def test_the_path_alone_gives_no_copy(copier: tuple[EmbeddedAPI, aiohttp.ClientSession]) -> None:
    """A backup contains every Secret: without `list` on everything it is refused, even with permission for the path."""
    api, session = copier
    async with session.get("/snapshot") as answer:
        assert answer.status == 403
        assert 'cannot list resource \\"*\\"' in await answer.text()
    await grant(api, "reader", {"verbs": ["list"], "apiGroups": ["*"], "resources": ["*"]})
    async with session.get("/snapshot") as answer:
        assert answer.status == 200


async def test_copies_that_a_killed_process_left_are_removed(tmp_path: Path) -> None:
    """They were on their way out, and hold every Secret."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / ".snapshot-0123").write_text("secrets")
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.listen("127.0.0.1", 0)
    await api.stop()
    assert not list(folder.glob(".snapshot-*"))


async def test_who_may_not_do_everything_puts_no_copy(copier: tuple[EmbeddedAPI, aiohttp.ClientSession]) -> None:
    """A copy can hold any role and binding: with it, its sender would make himself an administrator."""
    api, session = copier
    every = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
    await grant(api, "most", {"verbs": every, "apiGroups": ["*"], "resources": ["*"]})
    async with session.get("/snapshot") as answer:
        copy = await answer.read()
    for query in ("", "?dryRun=All"):
        async with session.put(f"/snapshot{query}", data=copy) as answer:
            assert answer.status == 403
    await grant(api, "all", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    async with session.put("/snapshot", data=copy) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.parametrize("link", ["+1", ".a", "[0]", ".map(x, x)", "&&true"])
def test_a_rule_as_long_as_a_stack_is_refused(link: str) -> None:
    """The engine would walk it by recursion and take the process with it."""
    with pytest.raises(RuleError, match="characters does not compile: 5000 are allowed"):
        program(Rule("self" + link * 20_000))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("[1,2,3,4,5,6,7,8,9,10]" + "".join(f".all({v}, [1,2,3,4,5,6,7,8,9,10]" for v in "abcdefghi") + ")" * 9, 1),
        ("self.split('').all(a, self.split('').all(b, a == a))", "x" * 100_000),
        ("self.findAll('.').all(a, self.findAll('.').all(b, a == a))", "x" * 100_000),
    ],
)
def test_loops_over_what_a_rule_makes_itself_count(rule: str, value: Any) -> None:
    """List literals in a rule, and lists from split strings, count for the cost limit of nested loops."""
    kind = "string" if isinstance(value, str) else "integer"
    node = compile_node({"type": kind, "x-kubernetes-validations": [{"rule": rule}]})
    found = list(check_rules(node, value))
    assert len(found) == 1
    assert "running out of cost budget" in found[0].message


@pytest.mark.parametrize(
    "rule",
    [
        "self" + ".replace('', self)" * 6 + ".size() > 0",
        "[self, self].join(self)" + ".replace('x', self)" * 4 + ".size() > 0",
        "lists.range(1000000000000).size() > 0",
    ],
)
def test_texts_and_lists_that_a_rule_lets_grow_are_cut_off(rule: str) -> None:
    """A few words of a rule must not fill the memory."""
    node = compile_node({"type": "string", "x-kubernetes-validations": [{"rule": rule}]})
    assert len(list(check_rules(node, "x" * 1000))) == 1
