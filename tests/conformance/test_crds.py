"""CustomResourceDefinitions at run time: accepted or refused, changed under stored objects, and taken away."""

import asyncio
import copy
from typing import Any

import pytest

from tests.conformance.api import GROUP, Api, Obj, Reply, definition
from tests.conformance.conftest import established
from tests.conformance.test_deletion import gone
from tests.conformance.test_list import names

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT: Obj = {"type": "string"}
NUMBER: Obj = {"type": "integer"}
RULES = "x-kubernetes-validations"


def fields(**properties: Obj) -> Obj:
    """A schema of an object."""
    return {"type": "object", "properties": properties}


class Kind:
    """A kind of this case alone."""

    def __init__(self, api: Api, crd: Obj) -> None:
        self.api, self.crd = api, crd
        self.kind, self.plural = crd["spec"]["names"]["kind"], crd["spec"]["names"]["plural"]
        self.path = f"{CRDS}/{crd['metadata']['name']}"

    def at(self, name: str = "", version: str = "v1") -> str:
        return self.api.path(self.plural, name, base=f"/apis/{GROUP}/{version}")

    async def create(self, name: str = "a", **spec: Any) -> Reply:
        head = {"apiVersion": f"{GROUP}/v1", "kind": self.kind, "metadata": {"name": name}}
        return await self.api.create(self.at(), {**head, "spec": spec})

    async def change(self, change: Any) -> Obj:
        """Update the CRD; conflicts are tried again, because a cluster writes its status meanwhile."""
        while True:
            crd = (await self.api.get(self.path)).ok()
            change(crd["spec"])
            if (reply := await self.api.update(self.path, crd)).code != 409:
                return reply.ok()


def named(api: Api, spec: Obj | None = None, word: str = "Thing", **version: Any) -> Obj:
    """A CRD whose names nobody else uses."""
    return definition(f"{word}{api.suffix}", spec=spec, **version)


async def installed(api: Api, crd: Obj) -> Kind:
    """Create a CRD and wait until it is served."""
    (await api.create(CRDS, crd)).ok()
    await established(api, crd["metadata"]["name"])
    return Kind(api, crd)


def properties(spec: Obj) -> Obj:
    """Properties of .spec in the first version of a CRD."""
    found: Obj = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


async def until(api: Api, path: str, done: Any) -> Obj:
    """The body of an answer that satisfies `done`."""
    async with asyncio.timeout(20):
        while True:
            got = await api.get(path)
            if got.code == 200 and done(got.body):
                return got.body
            await asyncio.sleep(0.05)


async def test_a_definition_is_established(api: Api) -> None:
    """Names are accepted, the kind is served, and the conditions say so."""
    kind = await installed(api, named(api, fields(a=TEXT)))

    status = (await api.get(kind.path)).ok()["status"]

    told = {(c["type"], c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    assert told == {
        ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["kind"] == kind.kind
    await api.delete(kind.path)


async def test_a_new_field_reaches_stored_objects(api: Api) -> None:
    """A default that comes later shows in objects of before when they are read, without a new version of them."""
    kind = await installed(api, named(api, fields(old={**TEXT, "default": "o"})))
    before = (await kind.create()).ok()

    await kind.change(lambda spec: properties(spec).update(later={**TEXT, "default": "l"}))

    read = await until(api, kind.at("a"), lambda body: "later" in body["spec"])
    assert read["spec"] == {"old": "o", "later": "l"}
    assert read["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert (await api.get(kind.at())).ok()["items"][0]["spec"] == read["spec"]
    labelled = (await api.patch(kind.at("a"), {"metadata": {"labels": {"a": "b"}}})).ok()
    assert labelled["metadata"]["generation"] == 1
    await kind.change(lambda spec: properties(spec).pop("old"))
    await until(api, kind.at("a"), lambda body: body["spec"] == {"later": "l"})
    await api.delete(kind.path)


async def test_a_definition_takes_its_objects_along(api: Api) -> None:
    """Deleting it deletes them, ends their watches, and leaves a path that is not there."""
    kind = await installed(api, named(api, fields(a=TEXT)))
    made = (await kind.create()).ok()
    async with api.watch(kind.at(), resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        (await api.delete(kind.path)).ok()

        assert (await watch.next())["type"] == "DELETED"
        with pytest.raises(StopAsyncIteration):
            await watch.next()
    await gone(api, kind.path)
    assert (await api.get(kind.at())).code == 404


async def test_a_taken_short_name_waits_until_it_is_free(api: Api) -> None:
    """Who wants a name of another is not established, says which, and gets it when the other goes."""
    first, second = named(api, fields(), "First"), named(api, fields(), "Second")
    for crd in (first, second):
        crd["spec"]["names"]["shortNames"] = [f"sn{api.suffix}"]
    one = await installed(api, first)
    (await api.create(CRDS, second)).ok()
    other = Kind(api, second)

    def condition(body: Obj) -> Obj:
        told = {c["type"]: c for c in body["status"].get("conditions") or ()}
        found: Obj = told.get("NamesAccepted", {})
        return found

    waiting = await until(api, other.path, lambda body: condition(body).get("status") == "False")
    assert condition(waiting)["reason"] == "ShortNamesConflict"
    assert condition(waiting)["message"] == f'"sn{api.suffix}" is already in use'
    assert "shortNames" not in waiting["status"]["acceptedNames"]
    assert waiting["status"]["acceptedNames"]["kind"] == other.kind
    (await api.delete(one.path)).ok()
    await until(api, other.path, lambda body: condition(body)["status"] == "True")
    await api.delete(other.path)


async def test_every_version_shows_the_same_object(http: Api) -> None:
    """Versions differ in apiVersion alone; one that is not served is not there; a deprecated one warns."""
    crd = named(http, fields(a=TEXT))
    more: list[Obj] = [{"name": "v2"}, {"name": "v1beta1", "deprecated": True, "deprecationWarning": "use v1"}]
    extras: list[Obj] = [*more, {"name": "v9", "served": False}]
    for extra in extras:
        crd["spec"]["versions"].append({**copy.deepcopy(crd["spec"]["versions"][0]), "storage": False, **extra})
    kind = await installed(http, crd)
    (await kind.create(a="x")).ok()

    await until(http, kind.at("a", "v2"), lambda body: body)
    second = await http.get(kind.at("a", "v2"))
    old = await http.get(kind.at("a", "v1beta1"))

    assert (second.ok()["apiVersion"], second.body["spec"]) == (f"{GROUP}/v2", {"a": "x"})
    assert old.warnings == ("use v1",)
    assert (await http.get(kind.at("a", "v9"))).code == 404
    await http.delete(kind.path)


async def test_objects_are_selected_by_declared_fields(api: Api) -> None:
    """selectableFields may be named in field selectors, whatever their type."""
    crd = named(api, fields(a=TEXT, n=NUMBER, b={"type": "boolean"}))
    crd["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": f".spec.{name}"} for name in "anb"]
    kind = await installed(api, crd)
    (await kind.create("p", a="1", n=5, b=True)).ok()
    (await kind.create("q", a="2", n=6)).ok()

    chosen = {
        text: "".join(names(await api.get(kind.at(), fieldSelector=text)))
        for text in ("spec.a=1", "spec.a!=1", "spec.n=5", "spec.b=true", "spec.b=", "metadata.name=q,spec.n=6")
    }

    assert list(chosen.values()) == ["p", "q", "p", "p", "q", "q"]
    await api.delete(kind.path)


async def test_lists_keep_what_they_promise(api: Api) -> None:
    """Sets and maps refuse duplicates; unknown fields go; null stays only where it may."""
    several = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    keyed = {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "items": {**fields(n=TEXT), "required": ["n"]},
    }  # fmt: skip
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = fields(s=several, m=keyed, free=free, nil={**TEXT, "nullable": True}, d={**TEXT, "default": "d"})
    kind = await installed(api, named(api, schema))

    twice = await kind.create(s=["a", "b", "a"])
    same = await kind.create(m=[{"n": "x"}, {"n": "x"}])
    kept = await kind.create(nil=None, d=None, free={"x": {"y": 1}}, junk=1)

    head = f'{kind.kind}.{GROUP} "a" is invalid: '
    assert twice.message == f'{head}spec.s[2]: Duplicate value: "a"'
    assert same.message == f'{head}spec.m[1]: Duplicate value: {{"n":"x"}}'
    assert kept.ok()["spec"] == {"nil": None, "d": "d", "free": {"x": {"y": 1}}}
    await api.delete(kind.path)


def ruled(rule: str, schema: Obj | None = None, **more: Any) -> Obj:
    """A schema with one rule at its top."""
    return {**(schema or fields(size=NUMBER)), RULES: [{"rule": rule, **more}]}


SCHEMA = "spec.validation.openAPIV3Schema.properties[spec]"
RULE = f"{SCHEMA}.{RULES}[0]"


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        (ruled("self.size >"), f"{RULE}.rule", "Syntax error: mismatched input '<EOF>' expecting"),
        (
            ruled("self.size > 1", reason="Foo"), f"{RULE}.reason",
            'Unsupported value: "Foo": supported values: "FieldValueDuplicate", "FieldValueForbidden", '
            '"FieldValueInvalid", "FieldValueRequired"',
        ),
        (ruled("self.size > 1", message="a\nb"), f"{RULE}.message", '"a\\nb": must not contain line breaks'),
        (fields(a={}), f"{SCHEMA}.properties[a].type", "Required value: must not be empty for specified object fields"),
        (
            fields(a={**NUMBER, "default": "x"}), f"{SCHEMA}.properties[a].default",
            'Invalid value: "string":  in body must be of type integer: "string"',
        ),
        (
            fields(l={"type": "array", "x-kubernetes-list-type": "map", "items": fields(a=TEXT)}),
            f"{SCHEMA}.properties[l].x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            fields(l={"type": "array", "x-kubernetes-list-type": "set", "items": fields(a=TEXT)}),
            f"{SCHEMA}.properties[l].items.x-kubernetes-map-type",
            "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
    ],
)  # fmt: skip
async def test_a_schema_that_is_refused(api: Api, spec: Obj, field: str, told: str) -> None:
    """A schema that cannot work is refused when it is brought, with the place of the fault."""
    refused = await api.create(CRDS, named(api, spec))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == [field]
    assert told in refused.message


@pytest.mark.parametrize(
    ("version", "field", "told"),
    [
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "foo", "jsonPath": ".spec"}]},
            "spec.additionalPrinterColumns[0].type",
            'Invalid value: "foo": must be one of boolean,date,integer,number,string',
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": "spec"}]},
            "spec.additionalPrinterColumns[0].JSONPath",
            'Invalid value: "spec": must be a simple json path starting with .',
        ),
        (
            {"selectableFields": [{"jsonPath": ".spec.nope"}]}, "spec.selectableFields[0].jsonPath",
            'Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field',
        ),
    ],
)  # fmt: skip
async def test_a_version_that_is_refused(api: Api, version: Obj, field: str, told: str) -> None:
    """Columns and selectable fields have to point somewhere."""
    refused = await api.create(CRDS, named(api, fields(a=TEXT), **version))

    assert (refused.code, [cause["field"] for cause in refused.causes]) == (422, [field])
    assert refused.causes[0]["message"] == told


async def test_a_rule_compares_with_what_was(api: Api) -> None:
    """A transition rule runs on updates alone; reason, message and fieldPath are those of the rule."""
    told = {"message": "f stays", "reason": "FieldValueForbidden", "fieldPath": ".f"}
    kind = await installed(api, named(api, ruled("!has(oldSelf.f) || has(self.f)", fields(f=TEXT), **told)))
    (await kind.create(f="x")).ok()

    refused = await api.patch(kind.at("a"), {"spec": {"f": None}})

    assert refused.code == 422
    assert refused.causes == [{"reason": "FieldValueForbidden", "message": "Forbidden: f stays", "field": "spec.f"}]
    await api.delete(kind.path)


async def test_rules_know_quantities_and_addresses(api: Api) -> None:
    """quantity, ip and optionalOldSelf work as Kubernetes documents them."""
    schema = fields(q={**TEXT, "maxLength": 20}, ip={**TEXT, "maxLength": 40})
    schema[RULES] = [
        {"rule": "!has(self.q) || quantity(self.q).isLessThan(quantity('2Gi'))", "message": "too big"},
        {"rule": "!has(self.ip) || ip(self.ip).family() == 4", "message": "v4"},
        {"rule": "oldSelf.hasValue() || !has(self.q) || self.q != '7'", "message": "not 7", "optionalOldSelf": True},
    ]
    kind = await installed(api, named(api, schema))

    answers = [await kind.create(f"n{at}", **spec) for at, spec in enumerate(
        ({"q": "1Gi"}, {"q": "3000Mi"}, {"ip": "10.0.0.1"}, {"ip": "::1"}, {"q": "7"})
    )]  # fmt: skip

    assert [(a.code, [c["message"].rpartition(": ")[2] for c in a.causes]) for a in answers] == [
        (201, []), (422, ["too big"]), (201, []), (422, ["v4"]), (422, ["not 7"]),
    ]  # fmt: skip
    assert (await api.patch(kind.at("n0"), {"spec": {"q": "7"}})).code == 200
    await api.delete(kind.path)
