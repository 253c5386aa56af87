"""Label and field selectors of lists: what they choose, and the sentences about what cannot be read."""

import pytest

from tests.conformance.api import Api, widget
from tests.conformance.test_list import labelled, names

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


async def test_labels_choose(api: Api) -> None:
    """Equality, sets, existence and order, joined by commas; a missing label satisfies what is negative."""
    (await api.create(api.path(), labelled("a", tier="web", rank="1"))).ok()
    (await api.create(api.path(), labelled("b", tier="db", rank="5"))).ok()
    (await api.create(api.path(), widget("c"))).ok()

    found = {
        text: "".join(names(await api.get(api.path(), labelSelector=text)))
        for text in (
            "", "tier=web", "tier==web", "tier!=web", "tier in (web,db)", "tier notin (web)", "tier", "!tier",
            "tier,rank>1", "rank<5", " tier = web , rank in ( 1 ) ", "tier in (,web)", "in", "tier=", "tier in ()",
        )
    }  # fmt: skip

    assert found == {
        "": "abc", "tier=web": "a", "tier==web": "a", "tier!=web": "bc", "tier in (web,db)": "ab",
        "tier notin (web)": "bc", "tier": "ab", "!tier": "c", "tier,rank>1": "b", "rank<5": "a",
        " tier = web , rank in ( 1 ) ": "a", "tier in (,web)": "a", "in": "", "tier=": "", "tier in ()": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a===", "unable to parse requirement: found '=', expected: identifier"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a>b", 'unable to parse requirement: values[0]: Invalid value: "b": for \'Gt\', \'Lt\' operators, the value '
                "must be an integer"),
        ("-x=1", f'unable to parse requirement: <nil>: Invalid value: "-x": {NAME_PART}'),
        ("a=-x", f'unable to parse requirement: values[0][a]: Invalid value: "-x": {VALUE}'),
    ],
)  # fmt: skip
async def test_label_selectors_that_cannot_be_read(api: Api, text: str, told: str) -> None:
    """A bad request whose sentence says what was found and what was expected."""
    refused = await api.get(api.path(), labelSelector=text)

    assert (refused.code, refused.reason, refused.message) == (400, "BadRequest", told)


async def test_fields_choose(api: Api) -> None:
    """Name and namespace of every kind, with both signs."""
    for name in ("a", "b"):
        (await api.create(api.path(), widget(name))).ok()

    chosen = names(await api.get(api.path(), fieldSelector="metadata.name=b"))
    others = names(await api.get(api.path(), fieldSelector=f"metadata.name!=b,metadata.namespace={api.space}"))
    both = names(await api.get(api.path(), fieldSelector="metadata.name==a,metadata.name!=b,"))

    assert (chosen, others, both) == (["b"], ["a"], ["a"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "invalid selector: 'x'; can't understand 'x'"),
        ("metadata.name>a", "invalid selector: 'metadata.name>a'; can't understand 'metadata.name>a'"),
        ("spec.size=1", "field label not supported: spec.size"),
        ("=a", "field label not supported: "),
        ("metadata.name=a=", "invalid field selector: unescaped character in value: 61"),
        ("metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"),
        ("metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"),
    ],
)
async def test_field_selectors_that_cannot_be_read(api: Api, text: str, told: str) -> None:
    """A bad request that names the part which is not understood, or the field that is not supported."""
    refused = await api.get(api.path(), fieldSelector=text)

    assert (refused.code, refused.reason, refused.message) == (400, "BadRequest", told)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/api/v1/secrets", "field label not supported: spec.foo"),
        ("/api/v1/namespaces", "field label not supported: spec.foo"),
        (
            "/api/v1/configmaps",
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "/apis/coordination.k8s.io/v1/leases",
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_fields_of_built_in_kinds(api: Api, path: str, told: str) -> None:
    """Kinds with fields of their own, and kinds without, say so differently."""
    refused = await api.get(path, fieldSelector="spec.foo=bar")

    assert (refused.code, refused.message) == (400, told)


async def test_secrets_are_chosen_by_type(api: Api) -> None:
    """`type` is a field of Secrets that selectors may name."""
    path = api.path("secrets", base="/api/v1")
    for name, kind in (("plain", "Opaque"), ("mine", "example.org/x")):
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind}
        (await api.create(path, made)).ok()

    assert names(await api.get(path, fieldSelector="type=example.org/x")) == ["mine"]
