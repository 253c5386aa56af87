"""Who may do what, by the roles that are stored; and clients in this process that are held to them."""

from collections.abc import Callable
from typing import Any

import pytest

from metal.apiserver.auth.access import Attributes, service_account
from metal.apiserver.auth.rbac_rules import Rule, missing
from metal.apiserver.client import InProcessClient
from metal.apiserver.machinery.users import User
from metal.kube.client.errors import Forbidden
from tests.apiserver.widgets import WIDGET, Api, running, widget

pytestmark = pytest.mark.looptime

BOB = User("bob", groups=("staff", "system:authenticated"))
RBAC = "rbac.authorization.k8s.io"


def rule(verbs: str, resources: str = "", groups: str = "example.org", **more: Any) -> dict[str, Any]:
    """A PolicyRule from words."""
    found = {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": groups.split(",")}
    return {**found, **more}


async def give(api: Api, *rules: dict[str, Any], namespace: str = "default", to: str = "bob") -> None:
    """A Role with the rules and a binding to a user."""
    role = {"metadata": {"name": "r"}, "rules": list(rules)}
    subject = {"kind": "User", "name": to}
    if to.startswith("system:serviceaccount:"):
        space, name = to.split(":")[2:]
        subject = {"kind": "ServiceAccount", "namespace": space, "name": name}
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [subject]}
    await api.create(role, "roles")
    await api.create(binding, "rolebindings")


def may(api: Api, verb: str, resource: str = "widgets", user: User = BOB, **more: Any) -> bool:
    """What the authorizer says about widgets in default."""
    asked = Attributes(user, verb, **{"group": "example.org", "resource": resource, "namespace": "default", **more})
    return api.backend.authorizer.decide(asked).allowed


async def test_nothing_is_allowed_until_a_role_allows_it_and_no_longer_than_that() -> None:
    """Decisions follow the objects: a binding counts from its creation to its deletion."""
    async with running() as api:
        assert not may(api, "get")
        await give(api, rule("get", "widgets"))
        assert may(api, "get")
        assert not may(api, "list")
        assert not may(api, "get", namespace="kube-system")
        await api.patch("r", {"rules": [rule("list", "widgets")]}, "roles")
        assert (may(api, "get"), may(api, "list")) == (False, True)
        await api.delete("b", "rolebindings")
        assert not may(api, "list")


@pytest.mark.parametrize(
    ("allowed", "asked", "answer"),
    [
        (rule("*", "*", "*"), {"verb": "delete"}, True),
        (rule("get", "widgets/status"), {"verb": "get"}, False),
        (rule("get", "*/status"), {"verb": "get", "subresource": "status"}, True),
        (rule("get", "*/status"), {"verb": "get", "subresource": "scale"}, False),
        (rule("get", "widgets"), {"verb": "get", "subresource": "status"}, False),
        (rule("get", "widgets", ""), {"verb": "get"}, False),
        (rule("get", "widgets", resourceNames=["a"]), {"verb": "get", "name": "a"}, True),
        (rule("get", "widgets", resourceNames=["a"]), {"verb": "get", "name": "b"}, False),
        (rule("list", "widgets", resourceNames=["a"]), {"verb": "list"}, False),
        (rule("get", "widgets"), {"verb": "get", "name": "b"}, True),
    ],
)
async def test_rules_mean_what_kubernetes_says(allowed: dict[str, Any], asked: dict[str, Any], answer: bool) -> None:
    """Wildcards, subresources and names of objects."""
    async with running() as api:
        await give(api, allowed)
        assert may(api, **asked) is answer


@pytest.mark.parametrize(
    ("paths", "asked", "answer"),
    [
        (["/metrics"], "/metrics", True),
        (["/logs/*"], "/logs/a/b", True),
        (["/logs/*"], "/log", False),
        (["*"], "/", True),
    ],
)
def test_paths_end_in_a_star(paths: list[str], asked: str, answer: bool) -> None:
    """A star at the end of a nonResourceURL covers every continuation; nothing else is a pattern."""
    assert Rule(("get",), paths=tuple(paths)).allows(Attributes(BOB, "get", path=asked)) is answer


def test_missing_rights_are_put_together_by_resource() -> None:
    """What a refusal lists: one rule for each resource with the verbs that are not held."""
    held = [Rule(("get",), ("",), ("secrets",)), Rule(("*",), ("apps",), ("*",), ("a",))]
    wanted = [Rule(("get", "list", "watch"), ("",), ("secrets",)), Rule(("get",), ("apps",), ("x",), ("a", "b"))]
    told = [str(rule) for rule in missing(held, wanted)]
    assert told == [
        '{APIGroups:[""], Resources:["secrets"], Verbs:["list" "watch"]}',
        '{APIGroups:["apps"], Resources:["x"], ResourceNames:["b"], Verbs:["get"]}',
    ]


async def test_a_client_in_this_process_is_held_to_its_roles() -> None:
    """A ServiceAccount in process may do what its roles allow; the refusal names account, verb, resource and place."""
    async with running() as api:
        name, groups = service_account("default", "manager")
        client = InProcessClient(api.backend, User(name, groups=groups))
        await give(api, rule("create get", "widgets"), to=name)
        await client.create(WIDGET, here("a"))
        assert (await client.get(WIDGET, "a", "default")).metadata.name == "a"
        told = (
            'widgets.example.org "a" is forbidden: User "system:serviceaccount:default:manager" cannot delete resource '
            '"widgets" in API group "example.org" in the namespace "default"'
        )
        with pytest.raises(Forbidden) as refused:
            await client.delete(WIDGET, "a", "default")
        assert told in str(refused.value)


def here(name: str) -> dict[str, Any]:
    """A widget of the namespace default."""
    return {"metadata": {"name": name, "namespace": "default"}}


ASKED: dict[str, Callable[[InProcessClient], Any]] = {
    "list": lambda client: client.list(WIDGET, "default"),
    "watch": lambda client: anext(client.watch(WIDGET, "default", resource_version="0")),
    "get": lambda client: client.get(WIDGET, "a", "default"),
    "patch": lambda client: client.patch(WIDGET, "a", {}, "default"),
    "patch status": lambda client: client.patch_status(WIDGET, "a", {}, "default"),
    "patch applied": lambda client: client.apply(WIDGET, here("a"), manager="m"),
    "delete": lambda client: client.delete(WIDGET, "a", "default"),
}


@pytest.mark.parametrize("what", ASKED)
async def test_every_way_of_an_in_process_client_is_checked(what: str) -> None:
    """Nothing slips by."""
    async with running() as api:
        await api.create(widget("a"), "widgets")
        with pytest.raises(Forbidden, match=f'"bob" cannot {what.split()[0]}'):
            await ASKED[what](InProcessClient(api.backend, BOB))


async def test_an_apply_that_creates_needs_the_right_to_create() -> None:
    """Patching is not enough for an object that does not exist yet."""
    async with running() as api:
        await api.create(widget("a"), "widgets")
        await give(api, rule("patch", "widgets"))
        client = InProcessClient(api.backend, BOB)
        await client.apply(WIDGET, here("a"), manager="m")
        with pytest.raises(Forbidden, match='"bob" cannot create'):
            await client.apply(WIDGET, here("b"), manager="m")


async def test_a_binding_to_a_role_that_is_gone_is_told() -> None:
    """Who is refused because his role is missing learns its name."""
    async with running() as api:
        await give(api, rule("get", "widgets"))
        await api.delete("r", "roles")
        decision = api.backend.authorizer.decide(Attributes(BOB, "get", "example.org", "widgets", "", "default"))
        assert decision.reason == 'RBAC: role.rbac.authorization.k8s.io "r" not found'


async def test_administrators_are_not_looked_up() -> None:
    """system:masters may do everything even where no role is left."""
    async with running() as api:
        for binding in await api.names("clusterrolebindings"):
            await api.delete(binding, "clusterrolebindings")
        assert may(api, "anything", user=User("root", groups=("system:masters",)))
