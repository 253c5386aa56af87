"""Rules in CEL (x-kubernetes-validations): when they run, what they say, and which are refused at the door."""

import asyncio
from typing import Any

import pytest

from tests.conformance.api import Api, Obj, Reply
from tests.conformance.test_crds import (
    CRDS,
    NUMBER,
    RULE,
    RULES,
    SCHEMA,
    TEXT,
    Kind,
    fields,
    installed,
    named,
    ruled,
)

SHORT: Obj = {**TEXT, "maxLength": 20}
FLAG: Obj = {"type": "boolean"}
FEW: Obj = {"type": "array", "maxItems": 5, "items": SHORT}
ITEMS: Obj = {
    "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    "items": {**fields(name=SHORT, size=NUMBER), "required": ["name"]},
}  # fmt: skip
EVERY = fields(
    size=NUMBER, name=SHORT, flag=FLAG, few=FEW, items=ITEMS, when={**TEXT, "format": "date-time"},
    map={"type": "object", "maxProperties": 5, "additionalProperties": NUMBER}, inner=fields(x=SHORT),
)  # fmt: skip


def rule(text: str, message: str = "", **more: Any) -> Obj:
    """One entry of x-kubernetes-validations."""
    return {"rule": text, **({"message": message} if message else {}), **more}


def told(reply: Reply) -> list[tuple[str, str, str]]:
    """Field, reason and message of each cause."""
    assert reply.code in (200, 201, 422), reply
    return [(cause["field"], cause["reason"], cause["message"]) for cause in reply.causes]


async def sized(api: Api, *rules: Obj, schema: Obj | None = None) -> Kind:
    """A kind with these rules on its spec."""
    return await installed(api, named(api, {**(schema or EVERY), RULES: list(rules)}))


async def test_a_rule_speaks_as_it_says(api: Api) -> None:
    """message, messageExpression before it, reason and fieldPath make the cause; without them the rule itself does."""
    kind = await sized(
        api,
        rule("!has(self.size) || self.size != 1"),
        rule("!has(self.size) || self.size != 2", "not two"),
        rule("!has(self.size) || self.size != 3", "not three", messageExpression="'got ' + self.inner.x"),
        rule("!has(self.size) || self.size != 4", "kept", messageExpression="self.name", fieldPath=".size"),
        rule("!has(self.size) || self.size != 5", "no five", reason="FieldValueForbidden", fieldPath=".inner.x"),
        rule("!has(self.size) || self.size != 6", "needed", reason="FieldValueRequired", fieldPath=".name"),
        rule("!has(self.size) || self.size != 7", "twice", reason="FieldValueDuplicate", fieldPath=".size"),
    )

    answers = [told(await kind.create(size=size, inner={"x": "it"})) for size in range(1, 8)]

    assert answers == [
        [("spec", "FieldValueInvalid", "Invalid value: failed rule: !has(self.size) || self.size != 1")],
        [("spec", "FieldValueInvalid", "Invalid value: not two")],
        [("spec", "FieldValueInvalid", "Invalid value: got it")],
        [("spec.size", "FieldValueInvalid", "Invalid value: kept")],
        [("spec.inner.x", "FieldValueForbidden", "Forbidden: no five")],
        [("spec.name", "FieldValueRequired", "Required value: needed")],
        [("spec.size", "FieldValueDuplicate", "Duplicate value")],
    ]
    await api.delete(kind.path)


async def test_transitions_are_judged_on_update_alone(api: Api) -> None:
    """A rule with oldSelf does not run on create, nor where there was no value; optionalOldSelf runs always."""
    kept = {**NUMBER, RULES: [rule("self >= oldSelf", "may not shrink")]}
    first = {**NUMBER, RULES: [rule("oldSelf.hasValue() || self == 0", "starts at 0", optionalOldSelf=True)]}
    kind = await installed(api, named(api, fields(kept=kept, first=first, other=NUMBER)))

    made = await kind.create(kept=5)
    late = await kind.create("b", first=3)
    grown = await api.patch(kind.at("a"), {"spec": {"kept": 6, "first": 0}})
    shrunk = await api.patch(kind.at("a"), {"spec": {"kept": 4}})
    moved = await api.patch(kind.at("a"), {"spec": {"first": 9, "other": 1}})
    again = await api.patch(kind.at("a"), {"spec": {"kept": None}})
    anew = await api.patch(kind.at("a"), {"spec": {"kept": 1}})

    assert [made.code, grown.code, moved.code, again.code, anew.code] == [201, 200, 200, 200, 200]
    assert told(late) == [("spec.first", "FieldValueInvalid", "Invalid value: 3: starts at 0")]
    assert told(shrunk) == [("spec.kept", "FieldValueInvalid", "Invalid value: 4: may not shrink")]
    await api.delete(kind.path)


async def test_items_meet_their_former_selves(api: Api) -> None:
    """In a list of type map by key, in a map by name; a new item has no former self; places carry index or key."""
    grows = [rule("self.size >= oldSelf.size", "item shrinks"), rule("self.name != 'no'", "bad name")]
    items = {**ITEMS, "items": {**ITEMS["items"], RULES: grows}}
    entries = {
        "type": "object", "maxProperties": 5,
        "additionalProperties": {**NUMBER, RULES: [rule("self >= oldSelf", "entry shrinks")]},
    }  # fmt: skip
    kind = await installed(api, named(api, fields(items=items, map=entries)))
    (await kind.create(items=[{"name": "a", "size": 5}, {"name": "b", "size": 7}], map={"x": 3})).ok()

    swapped = await api.patch(kind.at("a"), {"spec": {"items": [{"name": "b", "size": 7}, {"name": "a", "size": 6}]}})
    shrunk = await api.patch(kind.at("a"), {"spec": {"items": [{"name": "new", "size": 1}, {"name": "b", "size": 6}]}})
    less = await api.patch(kind.at("a"), {"spec": {"map": {"x": 2, "y": 1}}})
    bad = await kind.create("c", items=[{"name": "ok", "size": 1}, {"name": "no", "size": 1}])

    assert swapped.code == 200
    assert told(shrunk) == [("spec.items[1]", "FieldValueInvalid", "Invalid value: item shrinks")]
    assert told(less) == [("spec.map[x]", "FieldValueInvalid", "Invalid value: 2: entry shrinks")]
    assert told(bad) == [("spec.items[1]", "FieldValueInvalid", "Invalid value: bad name")]
    await api.delete(kind.path)


async def test_what_was_wrong_before_may_stay(api: Api) -> None:
    """A rule that comes later binds new objects and changed values; an old one may change elsewhere (ratcheting)."""
    kind = await installed(api, named(api, fields(size=NUMBER, note=TEXT)))
    (await kind.create(size=1)).ok()

    def add(spec: Obj) -> None:
        properties = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        properties["size"] = {**NUMBER, RULES: [rule("self > 10", "too small")]}

    await kind.change(add)
    probe = {"apiVersion": f"{kind.crd['spec']['group']}/v1", "kind": kind.kind, "metadata": {"name": "b"}}
    refused = await refusal(api, kind, {**probe, "spec": {"size": 2}})
    other = await api.patch(kind.at("a"), {"spec": {"note": "n"}})
    changed = await api.patch(kind.at("a"), {"spec": {"size": 2}})

    assert told(refused) == [("spec.size", "FieldValueInvalid", "Invalid value: 2: too small")]
    assert other.code == 200
    assert told(changed) == told(refused)
    await api.delete(kind.path)


async def refusal(api: Api, kind: Kind, obj: Obj) -> Reply:
    """The refusal of a create, as soon as the changed definition is served."""
    async with asyncio.timeout(20):
        while True:
            if (reply := await api.create(kind.at(), obj, dryRun="All")).code != 201:
                return reply
            await asyncio.sleep(0.05)


async def test_a_rule_at_the_root_sees_the_name(api: Api) -> None:
    """The root knows apiVersion, kind and metadata.name beside what the schema declares."""
    crd = named(api, fields(label=SHORT))
    root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    root[RULES] = [rule("self.metadata.name == self.spec.label && self.kind != ''", "name differs")]
    kind = await installed(api, crd)

    good, bad = await kind.create("same", label="same"), await kind.create("a", label="b")

    assert good.code == 201
    assert told(bad) == [("<nil>", "FieldValueInvalid", "Invalid value: name differs")]
    await api.delete(kind.path)


async def test_a_rule_that_fails_to_run_refuses(api: Api) -> None:
    """A missing key is an answer that names it, not a crash."""
    kind = await sized(api, rule("self.name == 'a'"))

    assert told(await kind.create(size=1)) == [
        ("spec", "FieldValueInvalid", "Invalid value: \"object\": no such key: name evaluating rule: self.name == 'a'")
    ]
    await api.delete(kind.path)


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        (
            "self.size > 1 &&", 17,
            "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', "
            "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
        ),
        ("self.size > 1 2", 15, "Syntax error: extraneous input '2' expecting <EOF>"),
    ],
)  # fmt: skip
async def test_a_rule_that_does_not_compile(api: Api, text: str, column: int, says: str) -> None:
    """A CRD whose rule does not compile is refused with the position in the rule and a pointer to it."""
    refused = await api.create(CRDS, named(api, ruled(text, EVERY)), dryRun="All")

    [(field, reason, message)] = told(refused)
    assert (field, reason) == (f"{RULE}.rule", "FieldValueInvalid")
    pointer = f" | {text}\n | {'.' * (column - 1)}^"
    assert message.endswith(f": compilation failed: ERROR: <input>:1:{column}: {says}\n{pointer}")


@pytest.mark.differs(
    "kube-apiserver checks names and types in a rule with its CRD; the embedded API compiles it, and it fails when run"
)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("self.siez > 1", "no such key: siez"),
        ("sefl.size > 1", "Undefined variable or function: 'sefl'"),
        ("isURI(string(self.size))", "Undefined variable or function: 'isURI'"),
        ("self.size + 'a' == 'b'", "No such overload"),
        ("self.size", "failed rule: self.size"),
    ],
)
async def test_names_and_types_in_a_rule(api: Api, text: str, says: str) -> None:
    """A rule with a misspelled name or a wrong type admits no object: the CRD, or each object, is refused."""
    crd = named(api, ruled(text, EVERY))

    brought = await api.create(CRDS, crd, dryRun="All")

    if api.is_kube:
        assert [(field, reason) for field, reason, _ in told(brought)] == [(f"{RULE}.rule", "FieldValueInvalid")]
        return
    assert brought.code == 201
    kind = await installed(api, crd)
    [(field, reason, message)] = told(await kind.create(size=2))
    assert (field, reason) == ("spec", "FieldValueInvalid")
    assert says in message


EXPRESSION = f"{RULE}.messageExpression"


@pytest.mark.parametrize(
    ("entry", "field", "reason", "says"),
    [
        (rule("self.flag", messageExpression="'a' +"), EXPRESSION, "Invalid", "messageExpression compilation failed"),
        (rule("self.flag", messageExpression="  "), EXPRESSION, "Required", "must be non-empty if specified"),
        (rule("self.flag", fieldPath="size"), f"{RULE}.fieldPath", "Invalid", '"size": must be a valid path'),
        (rule("self.flag", fieldPath=".nope"), f"{RULE}.fieldPath", "Invalid", '".nope": must be a valid path'),
        (rule("self.flag", fieldPath=".few[0]"), f"{RULE}.fieldPath", "Invalid", '".few[0]": must be a valid path'),
        (rule("self.flag", "  "), f"{RULE}.message", "Invalid", '"  ": must be non-empty if specified'),
        (rule("self.flag ==\n true"), f"{RULE}.message", "Required", "must be specified if rule contains line breaks"),
        (
            rule("self.flag", optionalOldSelf=True), f"{RULE}.optionalOldSelf", "Invalid",
            "true: may not be set if oldSelf is not used in rule",
        ),
        (rule("self.flag", reason="FieldValueTooLong"), f"{RULE}.reason", "NotSupported", "Unsupported value"),
        (rule(" "), f"{RULE}.rule", "Required", "rule is not specified"),
    ],
)  # fmt: skip
async def test_an_entry_that_is_refused(api: Api, entry: Obj, field: str, reason: str, says: str) -> None:
    """Expressions compile, paths name a field, and messages are not blank."""
    refused = await api.create(CRDS, named(api, {**EVERY, RULES: [entry]}), dryRun="All")

    [(found, why, message)] = told(refused)
    assert (found, why) == (field, f"FieldValue{reason}")
    assert says in message


async def test_old_selves_that_cannot_be_found_are_refused(api: Api) -> None:
    """Items of a set or an atomic list have no former selves: a rule there may not ask for them."""
    items = {**FEW, "items": {**SHORT, RULES: [rule("self == oldSelf")]}}

    refused = await api.create(CRDS, named(api, fields(few=items)), dryRun="All")

    place = f"{SCHEMA}.properties[few]"
    says = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
    assert told(refused) == [
        (f"{place}.items.{RULES}[0].rule", "FieldValueInvalid", f'Invalid value: "self == oldSelf": {says} {place}')
    ]


@pytest.mark.differs("kube-apiserver refuses a costly rule by an estimate; the embedded API bounds it where it runs")
async def test_loops_within_loops_have_a_bound(api: Api) -> None:
    """A rule that could run for ever does not: it is refused with its CRD, or with the object that is too large."""
    costly = ruled("self.l.all(x, self.l.all(y, x != y || x == y))", fields(l={"type": "array", "items": TEXT}))

    brought = await api.create(CRDS, named(api, costly), dryRun="All")

    if api.is_kube:
        assert (brought.code, {cause["reason"] for cause in brought.causes}) == (422, {"FieldValueForbidden"})
        assert "estimated rule cost exceeds budget by factor of more than 100x" in brought.causes[0]["message"]
        return
    assert brought.code == 201
    kind = await installed(api, named(api, costly))
    assert (await kind.create(l=["a", "b"])).code == 201
    refused = await kind.create("b", l=[str(at) for at in range(2000)])
    assert "running out of cost budget" in told(refused)[0][2]


FUNCTIONS = [
    ("isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) < 0", "1000Mi", "2Gi"),
    ("isIP(self) && ip(self).family() == 6", "fe80::1", "10.0.0.1"),
    ("isCIDR(self) && cidr(self).containsIP('10.0.0.7')", "10.0.0.0/24", "10.0.1.0/24"),
    ("isURL(self) && url(self).getHost() == 'a:1'", "https://a:1/x", "https://b:1/x"),
    ("self.find('[0-9]+') == '12' && self.matches('^[a-z0-9]+$')", "ab12c", "abc"),
    ("self.split(',').size() == 2", "a,b", "b"),
    ("self.lowerAscii().trim() == self && self.indexOf('x') == 0", "xy", "Xy"),
    ("timestamp(self) < timestamp('2026-01-01T00:00:00Z')", "2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ("duration(self) > duration('1m')", "2m", "2s"),
]
"""Rules on a text, one that passes, one that does not."""


async def test_functions_of_kubernetes(api: Api) -> None:
    """Quantities, addresses, networks, URLs, texts, times: the same values pass and fail."""
    schema = {f"f{at}": {**SHORT, RULES: [rule(text, f"rule {at}")]} for at, (text, _, _) in enumerate(FUNCTIONS)}
    kind = await installed(api, named(api, fields(**schema)))

    good = await kind.create(**{f"f{at}": value for at, (_, value, _) in enumerate(FUNCTIONS)})
    bad = await kind.create("b", **{f"f{at}": value for at, (_, _, value) in enumerate(FUNCTIONS)})

    assert good.code == 201, good
    assert sorted(told(bad)) == [
        (f"spec.f{at}", "FieldValueInvalid", f'Invalid value: "{value}": rule {at}')
        for at, (_, _, value) in enumerate(FUNCTIONS)
    ]
    await api.delete(kind.path)
