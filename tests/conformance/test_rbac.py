"""Roles and bindings are enforced, and privilege escalation is prevented."""

import pytest

from tests.conformance.api import Api, Obj, config_map, widget
from tests.conformance.rbac import RBAC, answered, binding, cluster_role, give, role, rule, settled, user

FIELDS = "metadata.name=a"


async def test_without_a_role_everything_is_forbidden(api: Api) -> None:
    """The refusal names user, verb, resource, group and namespace, and says nothing of whether the object exists."""
    bob = api.acting("bob")

    listed = await bob.get(api.path())
    read = await bob.get(api.path(name="a"))
    created = await bob.create(api.path(), widget())
    everywhere = await bob.get("/api/v1/secrets")

    where = f'in API group "conformance.example.org" in the namespace "{api.space}"'
    assert (listed.code, listed.reason) == (403, "Forbidden")
    assert listed.message == (
        f'widgets.conformance.example.org is forbidden: User "bob" cannot list resource "widgets" {where}'
    )
    assert listed.body["details"] == {"group": "conformance.example.org", "kind": "widgets"}
    assert read.message == (
        f'widgets.conformance.example.org "a" is forbidden: User "bob" cannot get resource "widgets" {where}'
    )
    assert created.message == listed.message.replace("cannot list", "cannot create")
    assert everywhere.message == (
        'secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" at the cluster scope'
    )


async def test_a_role_allows_what_its_rules_say(api: Api) -> None:
    """Verbs and resources of the rules, in the namespace of the binding, and nothing else."""
    bob = await give(api, f"bob-{api.suffix}", rule("get create"))

    (await bob.create(api.path(), widget())).ok()

    assert (await bob.get(api.path(name="a"))).code == 200
    assert (await bob.get(api.path())).code == 403
    assert (await bob.delete(api.path(name="a"))).code == 403
    assert (await bob.patch(api.path(name="a"), {"spec": {"size": 1}})).code == 403
    assert (await bob.get(api.path("configmaps", base="/api/v1"))).code == 403


async def test_status_is_a_resource_of_its_own(api: Api) -> None:
    """Who may patch widgets may not patch their status, and the other way round."""
    (await api.create(api.path(), widget())).ok()
    spec = await give(api, f"spec-{api.suffix}", rule("patch"))
    status = await give(api, f"status-{api.suffix}", rule("patch", "widgets/status"))

    refused = await spec.patch(api.path(name="a", sub="status"), {"status": {"phase": "x"}})

    assert refused.code == 403
    assert 'cannot patch resource "widgets/status" in API group' in refused.message
    assert (await status.patch(api.path(name="a", sub="status"), {"status": {"phase": "x"}})).code == 200
    assert (await status.patch(api.path(name="a"), {"spec": {"size": 1}})).code == 403


async def test_resource_names_limit_to_objects(api: Api) -> None:
    """A rule with names covers these objects, and lists and watches that select one of them by name."""
    for name in ("a", "b"):
        (await api.create(api.path(), widget(name))).ok()
    bob = await give(api, f"bob-{api.suffix}", rule("get list watch", resourceNames=["a"]))

    assert (await bob.get(api.path(name="a"))).code == 200
    assert (await bob.get(api.path(name="b"))).code == 403
    assert (await bob.get(api.path())).code == 403
    assert (await bob.get(api.path(), fieldSelector="metadata.name=b")).code == 403
    listed = (await bob.get(api.path(), fieldSelector=FIELDS)).ok()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    async with bob.watch(api.path(), fieldSelector=FIELDS, resourceVersion="0") as watch:
        seen = await watch.next()
    assert (seen["type"], seen["object"]["metadata"].get("name")) == ("ADDED", "a"), str(seen)
    async with bob.watch(api.path()) as watch:
        refused = await watch.next()
    assert (refused["type"], refused["object"]["code"]) == ("ERROR", 403)


async def test_an_apply_that_creates_needs_create(api: Api) -> None:
    """With the verb patch alone an apply changes existing objects; the refusal to create names the verb create."""
    (await api.create(api.path(), widget())).ok()
    bob = await give(api, f"bob-{api.suffix}", rule("patch"))

    assert (await bob.apply(api.path(name="a"), widget(size=1), "m")).code == 200
    refused = await bob.apply(api.path(name="b"), widget("b"), "m")

    assert refused.code == 403
    assert f'User "bob-{api.suffix}" cannot create resource "widgets"' in refused.message


async def test_a_binding_that_goes_takes_its_rights_along(api: Api) -> None:
    """Rights end with the binding, without any restart."""
    name = f"bob-{api.suffix}"
    bob = await give(api, name, rule("list"))
    assert (await bob.get(api.path())).code == 200

    (await api.delete(api.path("rolebindings", name, base=RBAC))).ok()

    await settled(api, name, rule("list"), "list", allowed=False)
    assert (await bob.get(api.path())).code == 403


async def test_groups_are_subjects(api: Api) -> None:
    """A binding to a group counts for its members."""
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"g-{api.suffix}"}
    (await api.create(api.path("roles", base=RBAC), role("r", rule("list")))).ok()
    (await api.create(api.path("rolebindings", base=RBAC), binding("b", "Role/r", group))).ok()
    asked = {"namespace": api.space, "verb": "list", "group": "conformance.example.org", "resource": "widgets"}
    await answered(api, {"user": "bob", "groups": [group["name"]], "resourceAttributes": asked})

    assert (await api.acting("bob", group["name"]).get(api.path())).code == 200
    assert (await api.acting("bob", "others").get(api.path())).code == 403


async def test_a_cluster_role_is_given_in_one_namespace_or_in_all(api: Api) -> None:
    """A RoleBinding to a ClusterRole gives its rules in that namespace; a ClusterRoleBinding everywhere."""
    name = f"reader-{api.suffix}"
    here, everywhere = f"here-{api.suffix}", f"everywhere-{api.suffix}"
    (await api.create(f"{RBAC}/clusterroles", cluster_role(name, rule("list")))).ok()
    local = binding("b", f"ClusterRole/{name}", user(here))
    (await api.create(api.path("rolebindings", base=RBAC), local)).ok()
    wide = binding(name, f"ClusterRole/{name}", user(everywhere), cluster=True)
    (await api.create(f"{RBAC}/clusterrolebindings", wide)).ok()
    try:
        await settled(api, here, rule("list"), "list")
        await settled(api, everywhere, rule("list"), "list")
        all_widgets = "/apis/conformance.example.org/v1/widgets"
        assert (await api.acting(here).get(api.path())).code == 200
        assert (await api.acting(here).get(all_widgets)).code == 403
        assert (await api.acting(everywhere).get(all_widgets)).code == 200
    finally:
        await api.delete(f"{RBAC}/clusterrolebindings/{name}")
        await api.delete(f"{RBAC}/clusterroles/{name}")


async def test_aggregated_roles_collect_rules(api: Api) -> None:
    """A ClusterRole with an aggregationRule holds the rules of those that its selectors match."""
    label = {f"example.org/{api.suffix}": "true"}
    whole, part = f"whole-{api.suffix}", f"part-{api.suffix}"
    aggregation = {"clusterRoleSelectors": [{"matchLabels": label}]}
    (await api.create(f"{RBAC}/clusterroles", cluster_role(whole, aggregationRule=aggregation))).ok()
    piece = cluster_role(part, rule("list"))
    piece["metadata"]["labels"] = label
    try:
        (await api.create(f"{RBAC}/clusterroles", piece)).ok()
        async with api.watch(
            f"{RBAC}/clusterroles", fieldSelector=f"metadata.name={whole}", resourceVersion="0"
        ) as watch:
            while not (found := (await watch.next())["object"])["rules"]:
                pass
        assert found["rules"] == [rule("list")]
    finally:
        await api.delete(f"{RBAC}/clusterroles/{whole}")
        await api.delete(f"{RBAC}/clusterroles/{part}")


@pytest.mark.parametrize(
    ("name", "verb", "resource", "allowed"),
    [
        ("view", "list", "configmaps", True),
        ("view", "list", "secrets", False),
        ("view", "create", "configmaps", False),
        ("edit", "get", "secrets", True),
        ("edit", "create", "rolebindings", False),
        ("admin", "create", "rolebindings", True),
    ],
)
async def test_the_roles_of_every_cluster_are_there(
    api: Api, name: str, verb: str, resource: str, allowed: bool
) -> None:
    """view reads all but secrets, edit also writes, admin also grants."""
    who = f"{name}-{api.suffix}"
    (await api.create(api.path("rolebindings", base=RBAC), binding("b", f"ClusterRole/{name}", user(who)))).ok()
    await settled(api, who, rule("list", "configmaps", ""), "list")

    group = "rbac.authorization.k8s.io" if resource == "rolebindings" else ""
    await settled(api, who, rule(verb, resource, group), verb, allowed=allowed)


async def test_nobody_grants_what_he_does_not_hold(api: Api) -> None:
    """A role with more permissions than its writer holds is refused; the refusal lists the missing ones."""
    name = f"bob-{api.suffix}"
    bob = await give(api, name, rule("get"), rule("create update", "roles", "rbac.authorization.k8s.io"))

    refused = await bob.create(api.path("roles", base=RBAC), role("more", rule("get list delete")))

    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        f'roles.rbac.authorization.k8s.io "more" is forbidden: user "{name}" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:["conformance.example.org"], Resources:["widgets"], Verbs:["list" "delete"]}'
    )
    less = (await bob.create(api.path("roles", base=RBAC), role("less", rule("get")))).ok()
    grown = await bob.update(api.path("roles", "less", base=RBAC), {**less, "rules": [rule("*")]})
    assert grown.code == 403


async def test_escalate_lets_one_grant_more(api: Api) -> None:
    """A user with the verb `escalate` may write rules without holding them."""
    own = rule("create escalate", "roles", "rbac.authorization.k8s.io")
    bob = await give(api, f"bob-{api.suffix}", own)
    await settled(api, f"bob-{api.suffix}", own, "escalate")

    (await bob.create(api.path("roles", base=RBAC), role("more", rule("*")))).ok()


async def test_nobody_binds_what_he_does_not_hold(api: Api) -> None:
    """A binding to a role with more rights is refused unless its writer may `bind` that role."""
    (await api.create(api.path("roles", base=RBAC), role("strong", rule("delete")))).ok()
    binder = rule("create", "rolebindings", "rbac.authorization.k8s.io")
    bob = await give(api, f"bob-{api.suffix}", binder)
    path = api.path("rolebindings", base=RBAC)

    refused = await bob.create(path, binding("b", "Role/strong", user("x")))
    missing = await bob.create(path, binding("b", "Role/none", user("x")))

    assert refused.code == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.message
    assert (missing.code, missing.message) == (404, 'rolebindings.rbac.authorization.k8s.io "none" not found')
    free = rule("bind", "roles", "rbac.authorization.k8s.io", resourceNames=["strong"])
    eve = await give(api, f"eve-{api.suffix}", binder, free)
    (await eve.create(path, binding("b", "Role/strong", user("x")))).ok()


async def test_only_administrators_aggregate(api: Api) -> None:
    """An aggregationRule could collect anything, so its writer needs every right."""
    name = f"bob-{api.suffix}"
    rights = cluster_role(name, rule("create", "clusterroles", "rbac.authorization.k8s.io"))
    (await api.create(f"{RBAC}/clusterroles", rights)).ok()
    bound = binding(name, f"ClusterRole/{name}", user(name), cluster=True)
    (await api.create(f"{RBAC}/clusterrolebindings", bound)).ok()
    try:
        await settled(api, name, rule("create", "clusterroles", "rbac.authorization.k8s.io"), "create")
        aggregation = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        wanted = cluster_role(f"all-{api.suffix}", aggregationRule=aggregation)
        refused = await api.acting(name).create(f"{RBAC}/clusterroles", wanted)
        assert refused.code == 403
        assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")
    finally:
        await api.delete(f"{RBAC}/clusterrolebindings/{name}")
        await api.delete(f"{RBAC}/clusterroles/{name}")


BAD_ROLES: list[tuple[Obj, str, str]] = [
    (
        {"resources": ["x"], "apiGroups": [""]},
        "rules[0].verbs",
        "Required value: verbs must contain at least one value",
    ),
    (
        {"verbs": ["get"], "resources": ["x"]},
        "rules[0].apiGroups",
        "Required value: resource rules must supply at least one api group",
    ),
    (
        {"verbs": ["get"], "apiGroups": [""]},
        "rules[0].resources",
        "Required value: resource rules must supply at least one resource",
    ),
    (
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        "rules[0].nonResourceURLs",
        'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
    ),
]


@pytest.mark.parametrize(("bad", "field", "told"), BAD_ROLES)
async def test_rules_that_say_nothing_are_refused(api: Api, bad: Obj, field: str, told: str) -> None:
    """Each cause names the field and what is missing."""
    refused = await api.create(api.path("roles", base=RBAC), role("r", bad))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [(field, told)]


BAD_BINDINGS: list[tuple[Obj, str, str]] = [
    ({"roleRef": {"kind": "Role", "name": ""}}, "roleRef.name", "Required value"),
    (
        {"roleRef": {"kind": "Pod", "name": "x"}},
        "roleRef.kind",
        'Unsupported value: "Pod": supported values: "Role", "ClusterRole"',
    ),
    (
        {"roleRef": {"kind": "Role", "name": "x", "apiGroup": "y"}},
        "roleRef.apiGroup",
        'Unsupported value: "y": supported values: "rbac.authorization.k8s.io"',
    ),
    (
        {"subjects": [{"kind": "Robot", "name": "x"}]},
        "subjects[0].kind",
        'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ),
    ({"subjects": [{"kind": "User", "name": ""}]}, "subjects[0].name", "Required value"),
    (
        {"subjects": [{"kind": "ServiceAccount", "name": "x", "apiGroup": "y"}]},
        "subjects[0].apiGroup",
        'Unsupported value: "y": supported values: ""',
    ),
]


@pytest.mark.parametrize(("bad", "field", "told"), BAD_BINDINGS)
async def test_bindings_that_bind_nothing_are_refused(api: Api, bad: Obj, field: str, told: str) -> None:
    """roleRef and subjects are checked one by one."""
    refused = await api.create(api.path("rolebindings", base=RBAC), {**binding("b", "Role/r"), **bad})

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [(field, told)]


async def test_a_binding_keeps_its_role(api: Api) -> None:
    """roleRef never changes; groups of the API are filled in."""
    bare = {
        **binding("b", "Role/r"),
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "x"}],
    }
    path = api.path("rolebindings", "b", base=RBAC)
    made = (await api.create(api.path("rolebindings", base=RBAC), bare)).ok()
    assert made["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    assert made["subjects"] == [user("x")]

    refused = await api.patch(path, {"roleRef": {"name": "s"}})

    assert refused.code == 422
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [("roleRef", "FieldValueInvalid")]
    assert refused.message.endswith(": cannot change roleRef")


async def test_tables_of_roles(http: Api) -> None:
    """kubectl's columns: when a role was made; role, age and subjects of a binding."""
    (await http.create(http.path("roles", base=RBAC), role("r", rule("get")))).ok()
    subjects = [user("x"), user("y"), {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    (await http.create(http.path("rolebindings", base=RBAC), binding("b", "Role/r", *subjects))).ok()
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    roles = (await http.way.request("GET", http.path("roles", base=RBAC), headers=headers)).ok()
    bindings = (await http.way.request("GET", http.path("rolebindings", base=RBAC), headers=headers)).ok()

    assert [column["name"] for column in roles["columnDefinitions"]] == ["Name", "Created At"]
    names = [(column["name"], column["priority"]) for column in bindings["columnDefinitions"]]
    wide = [("Users", 1), ("Groups", 1), ("ServiceAccounts", 1)]
    assert names == [("Name", 0), ("Role", 0), ("Age", 0), *wide]
    cells = bindings["rows"][0]["cells"]
    assert [*cells[:2], *cells[3:]] == ["b", "Role/r", "x, y", "", "n/s"]


async def test_strangers_are_anonymous(http: Api) -> None:
    """Without a token one is system:anonymous, who sees health and version; a wrong token is 401 everywhere."""
    stranger = {"Authorization": ""}

    refused = await http.way.request("GET", "/api/v1/secrets", headers=stranger)
    path = await http.way.request("GET", "/apis", headers=stranger)
    wrong = await http.way.request("GET", "/version", headers={"Authorization": "Bearer wrong"})

    assert refused.message == (
        'secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" at '
        "the cluster scope"
    )
    assert (path.code, path.message) == (403, 'forbidden: User "system:anonymous" cannot get path "/apis"')
    assert path.body["details"] == {}
    assert (wrong.code, wrong.reason, wrong.message) == (401, "Unauthorized", "Unauthorized")
    for public in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await http.way.request("GET", public, headers=stranger)).code == 200


async def test_every_user_may_look_around(http: Api) -> None:
    """Discovery is open to every authenticated user; other paths are not."""
    bob = http.acting("bob")

    for path in ("/api", "/apis", "/api/v1", "/openapi/v3", "/version"):
        assert (await bob.get(path)).code == 200
    assert (await bob.get("/metrics")).message == 'forbidden: User "bob" cannot get path "/metrics"'


async def test_paths_are_granted_to_clusters(http: Api) -> None:
    """A ClusterRole with nonResourceURLs opens paths that are no resources; a star ends a pattern."""
    name = f"paths-{http.suffix}"
    paths = {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}
    (await http.create(f"{RBAC}/clusterroles", cluster_role(name, paths))).ok()
    bound = binding(name, f"ClusterRole/{name}", user(name), cluster=True)
    (await http.create(f"{RBAC}/clusterrolebindings", bound)).ok()
    try:
        await answered(http, {"user": name, "nonResourceAttributes": {"verb": "get", "path": "/logs/x/y"}})
        assert (await http.acting(name).get("/log")).code == 403
        assert (await http.acting(name).delete("/logs/x")).code == 403
    finally:
        await http.delete(f"{RBAC}/clusterrolebindings/{name}")
        await http.delete(f"{RBAC}/clusterroles/{name}")


async def test_acting_as_somebody_else_needs_a_right_for_each_part(http: Api) -> None:
    """`impersonate` is asked for the user, for each group and for ServiceAccounts; without a user it makes no sense."""
    name = f"bob-{http.suffix}"
    as_bob = {"Impersonate-User": name}
    admin = await http.way.request("GET", http.path(), headers=as_bob)
    assert f'User "{name}" cannot list' in admin.message
    await give(http, name, rule("list"))
    token = (await http.create(http.path("serviceaccounts", base="/api/v1"), account("sa"))).ok()
    assert token["metadata"]["name"] == "sa"
    issued = await http.create(http.path("serviceaccounts", "sa", "token", base="/api/v1"), {})
    weak = http.way.holding(issued.ok()["status"]["token"])  # type: ignore[attr-defined]  # `http` has tokens

    to_user = await weak.request("GET", http.path(), headers=as_bob)
    to_account = await weak.request(
        "GET", http.path(), headers={"Impersonate-User": f"system:serviceaccount:{http.space}:x"}
    )
    no_user = await http.way.request("GET", http.path(), headers={"Impersonate-Group": "g"})

    me = f"system:serviceaccount:{http.space}:sa"
    assert to_user.message == (
        f'users "{name}" is forbidden: User "{me}" cannot impersonate resource "users" in API group "" at '
        "the cluster scope"
    )
    assert to_account.message == (
        f'serviceaccounts "x" is forbidden: User "{me}" cannot impersonate resource "serviceaccounts" in API group "" '
        f'in the namespace "{http.space}"'
    )
    assert no_user.code == 400


def account(name: str) -> Obj:
    """A ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


async def test_deleting_many_is_a_verb_of_its_own(api: Api) -> None:
    """delete does not allow deletecollection."""
    (await api.create(api.path("configmaps", base="/api/v1"), config_map())).ok()
    bob = await give(api, f"bob-{api.suffix}", rule("delete list", "configmaps", ""))

    refused = await bob.delete(api.path("configmaps", base="/api/v1"))

    assert 'cannot deletecollection resource "configmaps"' in refused.message
    assert (await bob.delete(api.path("configmaps", "a", base="/api/v1"))).code == 200
