"""What an API says it has: groups, versions and resources, in the old form and in one document."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, definition
from tests.conformance.conftest import established
from tests.conformance.ways import Reply

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LISTED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
BUILT_IN_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
STATUS_VERBS = ["get", "patch", "update"]


@pytest.fixture
async def group(http: Api) -> AsyncIterator[str]:
    """A group that one CRD of this case makes: gadgets in v1 (stored) and v1beta1, with names of every sort."""
    name = f"g{http.suffix}.example.org"
    crd = definition("Gadget", group=name)
    crd["spec"]["names"] |= {"shortNames": ["gd"], "categories": ["toys", "tools"]}
    older = {**crd["spec"]["versions"][0], "name": "v1beta1", "storage": False}
    crd["spec"]["versions"].insert(0, older)
    (await http.create(CRDS, crd)).ok()
    await established(http, f"gadgets.{name}")
    yield name
    await http.delete(f"{CRDS}/gadgets.{name}")


async def asked(http: Api, path: str, accept: str, **headers: str) -> Reply:
    """The answer to a GET in a form."""
    return await http.way.request("GET", path, headers={"Accept": accept, **headers})


async def listed(http: Api, group: str, path: str = "/apis") -> Obj | None:
    """A group in the aggregated document, or None."""
    items = (await asked(http, path, LISTED)).ok()["items"]
    return next((item for item in items if item["metadata"].get("name", "") == group), None)


async def until(question: Any, done: Any) -> Any:
    """The first answer that satisfies `done`: clusters tell of changes after a moment."""
    async with asyncio.timeout(20):
        while True:
            if done(answer := await question()):
                return answer
            await asyncio.sleep(0.05)


async def test_the_core_group_has_one_version(http: Api) -> None:
    """/api names v1."""
    got = (await http.get("/api")).ok()

    assert (got["kind"], got["versions"]) == ("APIVersions", ["v1"])
    assert isinstance(got["serverAddressByClientCIDRs"], list)


async def test_a_group_names_its_best_version_first(http: Api, group: str) -> None:
    """Stable versions precede beta ones, independent of the order in the CRD; the list of groups has the same order."""
    stable, beta = ({"groupVersion": f"{group}/{v}", "version": v} for v in ("v1", "v1beta1"))
    wanted = {"name": group, "versions": [stable, beta], "preferredVersion": stable}

    one = (await http.get(f"/apis/{group}")).ok()
    every = await until(lambda: http.get("/apis"), lambda got: group in [entry["name"] for entry in got.ok()["groups"]])

    assert one == {"kind": "APIGroup", "apiVersion": "v1", **wanted}
    assert every.body["kind"] == "APIGroupList"
    assert [entry for entry in every.body["groups"] if entry["name"] == group] == [wanted]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_version_lists_its_resources(http: Api, group: str, version: str) -> None:
    """Each with its names, categories, verbs in a cluster's order, the hash of what is stored, and its status."""
    got = (await http.get(f"/apis/{group}/{version}")).ok()

    hashed = got["resources"][0].pop("storageVersionHash")
    assert got == {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}",
        "resources": [
            {
                "name": "gadgets", "singularName": "gadget", "namespaced": True, "kind": "Gadget", "verbs": VERBS,
                "shortNames": ["gd"], "categories": ["toys", "tools"],
            },
            {"name": "gadgets/status", "singularName": "", "namespaced": True, "kind": "Gadget", "verbs": STATUS_VERBS},
        ],
    }  # fmt: skip
    other = (await http.get(f"/apis/{group}/{'v1beta1' if version == 'v1' else 'v1'}")).ok()
    assert re.fullmatch(r"[A-Za-z0-9+/]{11}=", hashed)
    assert hashed == other["resources"][0]["storageVersionHash"]


@pytest.mark.parametrize(
    ("path", "name", "hashed", "short"),
    [
        ("/api/v1", "configmaps", "qFsyl6wFWjQ=", ["cm"]),
        ("/api/v1", "secrets", "S6u1pOWzb84=", None),
        ("/apis/coordination.k8s.io/v1", "leases", "gqkMMb/YqFM=", None),
    ],
)
async def test_built_in_kinds_are_listed(http: Api, path: str, name: str, hashed: str, short: list[str] | None) -> None:
    """With the verbs, short names and hashes that every cluster gives."""
    resources = {entry["name"]: entry for entry in (await http.get(path)).ok()["resources"]}

    entry = resources[name]
    assert (entry["verbs"], entry["namespaced"]) == (BUILT_IN_VERBS, True)
    assert entry["storageVersionHash"] == hashed
    assert entry.get("shortNames") == short


@pytest.mark.parametrize("path", ["/apis/nobody.example.org", "/apis/nobody.example.org/v1", "/apis/GROUP/v9", "/nope"])
async def test_what_is_not_served_is_not_there(http: Api, group: str, path: str) -> None:
    """An unknown group, version or path is a 404."""
    assert (await http.get(path.replace("GROUP", group))).code == 404


async def test_one_document_lists_everything(http: Api, group: str) -> None:
    """Aggregated discovery: versions in order, each with its resources and their subresources."""
    got = await until(lambda: listed(http, group), lambda got: got and got["versions"][0]["freshness"] == "Current")

    def version(name: str) -> Obj:
        kind = {"group": group, "version": name, "kind": "Gadget"}
        return {
            "version": name, "freshness": "Current",
            "resources": [{
                "resource": "gadgets", "responseKind": kind, "scope": "Namespaced", "singularResource": "gadget",
                "verbs": VERBS, "shortNames": ["gd"], "categories": ["toys", "tools"],
                "subresources": [{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}],
            }],
        }  # fmt: skip

    assert got == {"metadata": {"name": group}, "versions": [version("v1"), version("v1beta1")]}


async def test_the_core_group_in_one_document(http: Api) -> None:
    """/api lists the core group, which has no name; tokens are a subresource that answers with another kind."""
    core = await listed(http, "", "/api")

    assert core is not None
    resources = {entry["resource"]: entry for entry in core["versions"][0]["resources"]}
    assert resources["secrets"] == {
        "resource": "secrets", "responseKind": {"group": "", "version": "", "kind": "Secret"},
        "scope": "Namespaced", "singularResource": "secret", "verbs": BUILT_IN_VERBS,
    }  # fmt: skip
    request = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    token = {"subresource": "token", "responseKind": request, "verbs": ["create"]}
    assert token in resources["serviceaccounts"]["subresources"]
    assert resources["namespaces"]["scope"] == "Cluster"


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_the_one_document_is_kept_by_clients(http: Api, path: str) -> None:
    """It has an ETag; who has that state already is told so in a 304 without a body."""
    first = await asked(http, path, LISTED)

    async def again() -> Reply:
        tag = (await asked(http, path, LISTED)).headers["ETag"]
        return await asked(http, path, LISTED, **{"If-None-Match": tag})

    # Other cases install CRDs meanwhile.
    same = await until(again, lambda got: got.code == 304)
    assert first.headers["Content-Type"] == LISTED
    assert (first.headers["Vary"], first.headers["Cache-Control"]) == ("Accept", "public")
    assert re.fullmatch(r'"[0-9A-F]{128}"', first.headers["ETag"])
    assert (same.body, same.headers["Cache-Control"]) == ({"raw": ""}, "public")
    stale = await asked(http, path, LISTED, **{"If-None-Match": '"00"'})
    assert stale.code == 200


@pytest.mark.parametrize("version", ["v2beta1", "v3"])
async def test_other_forms_of_the_document_are_not_given(http: Api, version: str) -> None:
    """Who takes nothing but another version gets 406; who takes plain JSON too gets the old form."""
    form = LISTED.replace("v=v2", f"v={version}")

    refused = await asked(http, "/apis", form)
    plain = await asked(http, "/apis", f"{form},application/json")

    assert (refused.code, refused.reason) == (406, "NotAcceptable")
    assert plain.ok()["kind"] == "APIGroupList"


async def test_a_group_comes_and_goes_with_its_definition(http: Api, group: str) -> None:
    """A group is listed in both forms of discovery while it has a CRD."""
    await until(lambda: listed(http, group), lambda got: got is not None)

    (await http.delete(f"{CRDS}/gadgets.{group}")).ok()

    await until(lambda: listed(http, group), lambda got: got is None)
    await until(lambda: http.get(f"/apis/{group}"), lambda got: got.code == 404)
    groups = (await http.get("/apis")).ok()["groups"]
    assert group not in [entry["name"] for entry in groups]


async def test_the_version_says_which_api_this_is(http: Api) -> None:
    """/version has the fields that clients read; both homes offer the API of the same minor version."""
    got = (await http.get("/version")).ok()

    assert (got["major"], got["minor"]) == ("1", "35")
    assert got["gitVersion"].startswith("v1.35.")
    assert set(got) == {
        "major", "minor", "emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor",
        "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform",
    }  # fmt: skip
    assert all(isinstance(value, str) for value in got.values())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_get_a_word(http: Api, path: str) -> None:
    """`ok` in plain text; with verbose, each check in a line and the sum of them in the last."""
    short = await http.get(path)
    long = await http.get(path, verbose="")

    assert (short.code, short.body) == (200, {"raw": "ok"})
    assert short.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert short.headers["Cache-Control"] == "no-cache, private"
    lines = long.ok()["raw"].splitlines()
    assert (lines[0], lines[-1]) == ("[+]ping ok", f"{path[1:]} check passed")
    assert all(re.match(r"\[\+\]\S+ ok$", line) for line in lines[:-1])
