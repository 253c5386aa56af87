"""Access reviews: SubjectAccessReviews, SelfSubjectRulesReview and SelfSubjectReview."""

import pytest

from tests.conformance.api import GROUP, Api, Obj
from tests.conformance.rbac import answered, give, review, rule

AUTHZ = "/apis/authorization.k8s.io/v1"


def asking(kind: str, **spec: object) -> Obj:
    """A review."""
    return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}


def widgets(api: Api, verb: str, **more: str) -> Obj:
    """Attributes of a request for widgets."""
    return {"namespace": api.space, "verb": verb, "group": GROUP, "resource": "widgets", **more}


async def test_one_may_ask_about_oneself(api: Api) -> None:
    """The answer says which binding allows it, or nothing."""
    name = f"bob-{api.suffix}"
    bob = await give(api, name, rule("get"))
    path = f"{AUTHZ}/selfsubjectaccessreviews"

    yes = (await bob.create(path, asking("SelfSubjectAccessReview", resourceAttributes=widgets(api, "get")))).ok()
    no = (await bob.create(path, asking("SelfSubjectAccessReview", resourceAttributes=widgets(api, "list")))).ok()
    admin = (await api.create(path, asking("SelfSubjectAccessReview", resourceAttributes=widgets(api, "x")))).ok()

    told = f'RBAC: allowed by RoleBinding "{name}/{api.space}" of Role "{name}" to User "{name}"'
    assert yes["status"] == {"allowed": True, "reason": told}
    assert no["status"] == {"allowed": False}
    assert admin["status"] == {"allowed": True}


async def test_administrators_ask_about_others(api: Api) -> None:
    """SubjectAccessReview takes a user and groups; who may not create one is refused."""
    asked = {"user": "x", "groups": ["system:masters"], "resourceAttributes": widgets(api, "get")}

    assert (await review(api, asked))["allowed"] is True
    assert (await review(api, {**asked, "groups": ["others"]}))["allowed"] is False
    refused = await api.acting("bob").create(f"{AUTHZ}/subjectaccessreviews", asking("SubjectAccessReview", **asked))
    assert 'User "bob" cannot create resource "subjectaccessreviews"' in refused.message


async def test_paths_are_asked_for_too(api: Api) -> None:
    """nonResourceAttributes: every authenticated user may read /api, only administrators /metrics."""
    for path, allowed in (("/api", True), ("/metrics", False)):
        asked = {
            "user": "x",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"verb": "get", "path": path},
        }
        assert (await review(api, asked))["allowed"] is allowed


async def test_a_local_review_stays_in_its_namespace(api: Api) -> None:
    """Its namespace is that of the path."""
    path = api.path("localsubjectaccessreviews", base=AUTHZ)
    asked = asking("LocalSubjectAccessReview", user="x", resourceAttributes=widgets(api, "get"))
    asked["metadata"] = {"namespace": api.space}
    elsewhere = asking("LocalSubjectAccessReview", user="x", resourceAttributes=widgets(api, "get", namespace="other"))
    elsewhere["metadata"] = {"namespace": api.space}

    assert (await api.create(path, asked)).ok()["status"] == {"allowed": False}
    refused = await api.create(path, elsewhere)
    assert refused.code == 422
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [
        ("spec.resourceAttributes.namespace", 'Invalid value: "other": must match metadata.namespace')
    ]


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        (
            {},
            "spec.resourceAttributes",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            "spec.nonResourceAttributes",
            "cannot be specified in combination with resourceAttributes",
        ),
    ],
)
async def test_a_review_asks_one_question(api: Api, spec: Obj, field: str, told: str) -> None:
    """Either a resource or a path."""
    refused = await api.create(f"{AUTHZ}/selfsubjectaccessreviews", asking("SelfSubjectAccessReview", **spec))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == [field]
    assert refused.causes[0]["message"].endswith(told)


async def test_a_review_needs_a_subject(api: Api) -> None:
    """A user or a group."""
    asked = asking("SubjectAccessReview", resourceAttributes=widgets(api, "get"))

    refused = await api.create(f"{AUTHZ}/subjectaccessreviews", asked)

    told = 'Invalid value: "": at least one of user or group must be specified'
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [("spec.user", told)]


async def test_rules_are_listed(api: Api) -> None:
    """What every user may do, and what the roles of this namespace add."""
    bob = await give(api, f"bob-{api.suffix}", rule("get list", resourceNames=["a"]))

    reply = await bob.create(f"{AUTHZ}/selfsubjectrulesreviews", asking("SelfSubjectRulesReview", namespace=api.space))

    status = reply.ok()["status"]
    assert status["incomplete"] is False
    own = {"verbs": ["get", "list"], "apiGroups": [GROUP], "resources": ["widgets"], "resourceNames": ["a"]}
    assert own in status["resourceRules"]
    basic = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    assert {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": basic} in status["resourceRules"]
    assert {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]} in (
        status["nonResourceRules"]
    )


async def test_rules_need_a_namespace(api: Api) -> None:
    """400 without one."""
    refused = await api.create(f"{AUTHZ}/selfsubjectrulesreviews", asking("SelfSubjectRulesReview"))

    assert (refused.code, refused.message) == (400, "no namespace on request")


@pytest.mark.parametrize("user", ["bob", "system:anonymous"])
async def test_one_learns_who_one_is(http: Api, user: str) -> None:
    """Name and groups; anonymous callers may not even ask that."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    reply = await http.acting(user).create("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)

    if user == "system:anonymous":
        assert (reply.code, reply.reason) == (403, "Forbidden")
    else:
        assert reply.ok()["status"]["userInfo"] == {"username": "bob", "groups": ["system:authenticated"]}


async def test_a_role_that_is_gone_is_told(api: Api) -> None:
    """A refusal to a user with a binding to a missing role names that role."""
    name = f"bob-{api.suffix}"
    await give(api, name, rule("get"))
    (await api.delete(api.path("roles", name, base="/apis/rbac.authorization.k8s.io/v1"))).ok()
    status = await answered(api, {"user": name, "resourceAttributes": widgets(api, "get")}, allowed=False)

    assert status["reason"] == f'RBAC: role.rbac.authorization.k8s.io "{name}" not found'
