"""Parsing of manifests, selectors, tolerations and references."""

from typing import Any

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from metal.api.common import Taint
from metal.api.common import Toleration as Tolerated
from metal.cli.machines.claim_options import Selector, Toleration
from metal.cli.machines.targets import decoded
from metal.cli.objects import manifests, references
from metal.cli.support.exits import Missing
from metal.cli.support.resources import find
from metal.controllers.claim.matching import tolerates
from metal.kube.client.resources import Resource
from metal.kube.meta import selector_syntax, selectors

NAME = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
PART = st.one_of(
    st.tuples(NAME, NAME).map("=".join),
    st.tuples(NAME, NAME).map("!=".join),
    st.tuples(NAME, st.lists(NAME, min_size=1, max_size=3)).map(lambda p: f"{p[0]} in ({','.join(p[1])})"),
    st.tuples(NAME, st.lists(NAME, min_size=1, max_size=3)).map(lambda p: f"{p[0]} notin ({','.join(p[1])})"),
    NAME,
    NAME.map("!{}".format),
)


@given(st.lists(PART, min_size=1, max_size=4).map(",".join), st.dictionaries(NAME, NAME, max_size=4))
def test_a_selector_has_the_meaning_of_kubectl(words: str, labels: dict[str, str]) -> None:
    """The LabelSelector and kubectl's syntax select the same servers."""
    made = Selector().convert(words, None, None)
    assert selectors.from_object(made).matches(labels) == selector_syntax.parse(words).matches(labels)


@given(
    NAME, st.none() | NAME, st.sampled_from(["", "NoBind", "Evict"]), NAME, NAME, st.sampled_from(["NoBind", "Evict"])
)
def test_a_toleration_matches_its_taints(
    key: str, value: str | None, effect: str, other: str, taint_value: str, taint_effect: str
) -> None:
    """A toleration matches the key, and the value and the effect if they are set."""
    words = key + (f"={value}" if value is not None else "") + (f":{effect}" if effect else "")
    made: Tolerated = Tolerated(**Toleration().convert(words, None, None))
    for taint in (Taint(key=key, value=taint_value, effect=taint_effect), Taint(key=other, value=value or "")):
        expected = taint.key == key and value in (None, taint.value) and effect in ("", taint.effect)
        assert tolerates(made, taint) == expected


OBJECT = st.fixed_dictionaries({
    "apiVersion": st.just("v1"),
    "kind": st.just("ConfigMap"),
    "metadata": st.fixed_dictionaries({"name": NAME}),
    "data": st.dictionaries(NAME, st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]))),
})  # fmt: skip


@given(st.lists(OBJECT, min_size=1, max_size=4), st.booleans())
def test_files_give_their_objects_in_order(objects: list[Any], listed: bool) -> None:
    """Documents and Lists are read in order; empty documents are skipped."""
    text = yaml.safe_dump({"kind": "List", "items": objects}) if listed else "---\n" + yaml.safe_dump_all(objects)
    assert [one.obj for one in manifests.documents(text, "x")] == objects


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- a", "x: an object must be a mapping"),
        ("{kind: A, apiVersion: v1}", "metadata.name is missing"),
        ("{kind: A, apiVersion: v1, metadata: {name: 1}}", "quote numbers"),
        ("{kind: A, apiVersion: 1}", "apiVersion is missing"),
        ("{kind: A, apiVersion: v1, metadata: {name: a}}\n---\n{kind: A}", "x document 2: apiVersion"),
        ("a: b\n  c: d", "x line 2: not YAML"),
    ],
)
def test_an_invalid_object_is_reported_with_its_place(text: str, complaint: str) -> None:
    """The error names the file, the document, the line and the field."""
    with pytest.raises(click.UsageError, match=complaint):
        list(manifests.documents(text, "x"))


def kind(plural: str, group: str = "g", *short: str, category: str = "all") -> Resource:
    return Resource(group, "v1", plural[:-1].title(), plural, plural[:-1], True, short, (category,), ("get", "list"))


KNOWN = (kind("things", "g", "th"), kind("worlds"), kind("things", "other"))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("things",), ["thing.g/"]), (("th", "a", "b"), ["thing.g/a", "thing.g/b"]), (("THING/a",), ["thing.g/a"]),
        (("things.other",), ["thing.other/"]), (("th,worlds",), ["thing.g/", "world.g/"]),
        (("world/a", "th/b"), ["world.g/a", "thing.g/b"]), (("all",), ["thing.g/", "world.g/", "thing.other/"]),
    ],
)  # fmt: skip
def test_words_name_kinds_and_objects(words: tuple[str, ...], names: list[str]) -> None:
    """Every name of a kind works; the first group takes precedence; a category stands for all of its kinds."""
    assert [str(one) for one in references.read(KNOWN, words)] == names


@pytest.mark.parametrize("words", [("th,worlds", "a"), ("th/a", "b"), ("th/",), ("th/a/b",), ("/a",)])
def test_ambiguous_references_are_rejected(words: tuple[str, ...]) -> None:
    """Ambiguous references are usage errors."""
    with pytest.raises(click.UsageError):
        references.read(KNOWN, words)


def test_a_missing_kind_has_suggestions() -> None:
    """The error suggests similar kinds."""
    with pytest.raises(Missing, match="did you mean worlds"):
        find(KNOWN, "wolrds")


def test_an_undecodable_object_is_reported_by_name() -> None:
    """An object that cannot be decoded is an error with its name, not a traceback."""
    with pytest.raises(click.ClickException, match="s1 cannot be read"):
        decoded({"metadata": {"name": "s1"}, "key": 1}, Tolerated)
