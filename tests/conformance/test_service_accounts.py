"""ServiceAccounts and the tokens that are issued for them."""

import asyncio
import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, widget
from tests.conformance.rbac import RBAC, binding, role, rule, settled
from tests.conformance.ways import OverHTTP

CORE = "/api/v1"
AUDIENCE = "https://kubernetes.default.svc"


def account(name: str = "sa") -> Obj:
    """A new ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def token_request(**spec: Any) -> Obj:
    """A TokenRequest."""
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def claims(token: str) -> Obj:
    """What a token says."""
    body = token.split(".")[1]
    decoded: Obj = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return decoded


async def issued(api: Api, name: str = "sa", **spec: Any) -> str:
    """A new account of this name where there is none, and a token of it."""
    await api.create(api.path("serviceaccounts", base=CORE), account(name))
    reply = await api.create(api.path("serviceaccounts", name, "token", base=CORE), token_request(**spec))
    token: str = reply.ok()["status"]["token"]
    return token


async def review(api: Api, token: str, **spec: Any) -> Obj:
    """The status of a TokenReview."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **spec}}
    status: Obj = (await api.create("/apis/authentication.k8s.io/v1/tokenreviews", asked)).ok()["status"]
    return status


def holding(api: Api, token: str) -> OverHTTP:
    """The way to the API with a token."""
    assert isinstance(api.way, OverHTTP)
    return api.way.holding(token)


async def test_every_namespace_has_a_default_account(api: Api) -> None:
    """It comes with the namespace, and comes back when it is deleted."""
    path = api.path("serviceaccounts", base=CORE)
    async with api.watch(path, fieldSelector="metadata.name=default", resourceVersion="0") as watch:
        first = (await watch.next())["object"]["metadata"]["uid"]
        (await api.delete(f"{path}/default")).ok()
        events = await watch.many(2)

    assert [event["type"] for event in events] == ["DELETED", "ADDED"]
    assert events[1]["object"]["metadata"]["uid"] != first


async def test_a_token_is_issued(api: Api) -> None:
    """A TokenRequest is answered with a token, when it ends, and the audiences and seconds that count."""
    made = (await api.create(api.path("serviceaccounts", base=CORE), account())).ok()

    answered = (await api.create(api.path("serviceaccounts", "sa", "token", base=CORE), token_request())).ok()

    assert (answered["kind"], answered["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert answered["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answered["metadata"]["name"] == "sa"
    told = claims(answered["status"]["token"])
    assert told["sub"] == f"system:serviceaccount:{api.space}:sa"
    assert (told["aud"], told["iss"], told["exp"] - told["iat"]) == ([AUDIENCE], AUDIENCE, 3600)
    assert told["kubernetes.io"] == {
        "namespace": api.space,
        "serviceaccount": {"name": "sa", "uid": made["metadata"]["uid"]},
    }
    ends = datetime.fromisoformat(answered["status"]["expirationTimestamp"].replace("Z", "+00:00"))
    assert abs((ends - datetime.fromtimestamp(told["exp"], UTC)).total_seconds()) <= 1


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (599, "Invalid value: 599: may not specify a duration less than 10 minutes"),
        (0, "Invalid value: 0: may not specify a duration less than 10 minutes"),
        (2**32 + 1, "Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"),
    ],
)
async def test_tokens_live_ten_minutes_at_least(api: Api, seconds: int, told: str) -> None:
    """The duration has bounds on both sides."""
    await api.create(api.path("serviceaccounts", base=CORE), account())

    refused = await api.create(
        api.path("serviceaccounts", "sa", "token", base=CORE), token_request(expirationSeconds=seconds)
    )

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [("spec.expirationSeconds", told)]


async def test_an_account_that_is_not_there_has_no_tokens(api: Api) -> None:
    """404 names the account; another name in the body is refused."""
    await api.create(api.path("serviceaccounts", base=CORE), account())

    missing = await api.create(api.path("serviceaccounts", "no", "token", base=CORE), token_request())
    other = {**token_request(), "metadata": {"name": "other"}}
    wrong = await api.create(api.path("serviceaccounts", "sa", "token", base=CORE), other)

    assert (missing.code, missing.message) == (404, 'serviceaccounts "no" not found')
    assert wrong.code in (400, 422)


async def test_tokens_are_only_created(http: Api) -> None:
    """The subresource has no other verb."""
    await http.create(http.path("serviceaccounts", base=CORE), account())

    for method in ("GET", "PUT", "DELETE"):
        body = token_request() if method == "PUT" else None
        refused = await http.way.request(method, http.path("serviceaccounts", "sa", "token", base=CORE), body)
        assert (refused.code, refused.reason) == (405, "MethodNotAllowed")


async def test_who_holds_a_token_is_the_account(http: Api) -> None:
    """Name and groups are the account's, and its roles count."""
    token = await issued(http)
    subject = {"kind": "ServiceAccount", "name": "sa", "namespace": http.space}
    me = holding(http, token)
    before = await me.request("POST", http.path(), widget())
    (await http.create(http.path("roles", base=RBAC), role("r", rule("create")))).ok()
    (await http.create(http.path("rolebindings", base=RBAC), binding("b", "Role/r", subject))).ok()
    await settled(http, f"system:serviceaccount:{http.space}:sa", rule("create"), "create")

    who = await me.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", SELF)

    info = who.ok()["status"]["userInfo"]
    assert info["username"] == f"system:serviceaccount:{http.space}:sa"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{http.space}", "system:authenticated"]
    assert info["groups"] == groups
    assert info["extra"] == {"authentication.kubernetes.io/credential-id": [f"JTI={claims(token)['jti']}"]}
    assert before.code == 403
    assert (await me.request("POST", http.path(), widget())).code == 201


SELF = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def test_a_token_dies_with_its_account_and_with_its_secret(http: Api) -> None:
    """A token is invalid after its account or bound Secret is deleted, also when another has the same name."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    (await http.create(http.path("secrets", base=CORE), secret)).ok()
    token = await issued(http)
    me = holding(http, token)
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    with_secret = holding(http, await issued(http, "other", boundObjectRef=bound))
    assert [(await one.request("GET", "/api")).code for one in (me, with_secret)] == [200, 200]

    (await http.delete(http.path("serviceaccounts", "sa", base=CORE))).ok()
    (await http.delete(http.path("secrets", "s", base=CORE))).ok()
    await refused_soon(me)
    await refused_soon(with_secret)
    (await http.create(http.path("serviceaccounts", base=CORE), account())).ok()

    assert (await me.request("GET", "/api")).code == 401
    assert "authenticated" not in await review(http, token)


async def refused_soon(me: OverHTTP) -> None:
    """Wait until a token is refused: kube-apiserver remembers good ones for some seconds."""
    for _ in range(150):
        if (await me.request("GET", "/api")).code == 401:
            return
        await asyncio.sleep(0.2)
    pytest.fail("the token is still good after 30 s")


async def test_tokens_for_others_are_not_for_us(http: Api) -> None:
    """A token of another audience gets 401 here; a review for that audience knows it."""
    token = await issued(http, audiences=["vault"])

    assert (await holding(http, token).request("GET", "/api")).code == 401
    assert "authenticated" not in await review(http, token)
    known = await review(http, token, audiences=["vault", "other"])
    assert (known["authenticated"], known["audiences"]) == (True, ["vault"])


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_token_that_was_touched_is_refused(http: Api, part: int) -> None:
    """Header, claims and signature are one: changing any gets 401."""
    parts = (await issued(http)).split(".")
    middle = len(parts[part]) // 2
    parts[part] = parts[part][:middle] + ("A" if parts[part][middle] != "A" else "B") + parts[part][middle + 1 :]

    assert (await holding(http, ".".join(parts)).request("GET", "/api")).code == 401


async def test_nobody_signs_for_us(http: Api) -> None:
    """A token without signature, as alg none would allow, is refused."""
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    body = (await issued(http)).split(".")[1]

    assert (await holding(http, f"{head}.{body}.").request("GET", "/api")).code == 401


async def test_tokens_are_bound_to_secrets_only(api: Api) -> None:
    """Nothing else that this API has can be bound to; a Secret must exist."""
    await api.create(api.path("serviceaccounts", base=CORE), account())
    path = api.path("serviceaccounts", "sa", "token", base=CORE)

    wrong = await api.create(path, token_request(boundObjectRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "s"}))
    missing = await api.create(path, token_request(boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "s"}))

    assert (wrong.code, wrong.message) == (400, "cannot bind token to object of type /v1, Kind=ConfigMap")
    assert (missing.code, missing.message) == (404, 'secrets "s" not found')


async def test_a_review_says_who_a_token_is(api: Api) -> None:
    """Name, uid and groups of the account."""
    made = (await api.create(api.path("serviceaccounts", base=CORE), account())).ok()

    known = await review(api, await issued(api))

    assert (known["authenticated"], known["audiences"]) == (True, [AUDIENCE])
    assert known["user"]["username"] == f"system:serviceaccount:{api.space}:sa"
    assert known["user"]["uid"] == made["metadata"]["uid"]


async def test_a_review_of_nonsense_is_no(api: Api) -> None:
    """What is no token of ours is not authenticated; no token at all makes no sense."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}

    unknown = await review(api, "nonsense")
    empty = await api.create("/apis/authentication.k8s.io/v1/tokenreviews", asked)

    assert "authenticated" not in unknown
    assert unknown["user"] == {}
    assert "invalid bearer token" in unknown["error"]
    assert (empty.code, empty.message) == (400, "token is required for TokenReview in authentication")


async def test_discovery_names_the_token(http: Api) -> None:
    """kubectl create token looks for serviceaccounts/token."""
    resources = (await http.get("/api/v1")).ok()["resources"]

    (token,) = [entry for entry in resources if entry["name"] == "serviceaccounts/token"]
    assert token == {
        "name": "serviceaccounts/token",
        "singularName": "",
        "namespaced": True,
        "group": "authentication.k8s.io",
        "version": "v1",
        "kind": "TokenRequest",
        "verbs": ["create"],
    }
