"""Selectors of a request."""

import pytest

from metal.apiserver.machinery.selectors import BadSelector, FieldTerm, field_terms, fields, labels

OBJ = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"on": True, "n": 5}, "involvedObject": {"uid": "1,2=3"}}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True), ("app=web", True), ("app==web", True), ("app!=web", False), ("missing!=x", True), ("app", True),
        ("!app", False), ("!missing", True), ("app in (web, db)", True), ("app notin (web)", False),
        ("tier in (x),app", False), ("app=web,tier=front", True), ("other notin (a)", True),
    ],
)  # fmt: skip
def test_labels_in_kubectls_syntax(text: str, matches: bool) -> None:
    """Equality, sets and existence, joined by commas."""
    assert labels(text)({"app": "web", "tier": "front"}) is matches


@pytest.mark.parametrize("text", ["app in", "a=b,", "=x", "a in (b", "a b"])
def test_labels_that_cannot_be_read(text: str) -> None:
    """The error says that it is about a selector."""
    with pytest.raises(BadSelector, match=r"unable to parse requirement|found '"):
        labels(text)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True), ("metadata.name=a", True), ("metadata.name==a", True), ("metadata.name!=a", False),
        ("metadata.name=a,metadata.namespace=ns", True), ("metadata.name=a,metadata.namespace=other", False),
        ("spec.on=true", True), ("spec.n=5", True), ("spec.missing=", True), ("spec.missing!=x", True),
        (r"involvedObject.uid=1\,2\=3", True), ("spec.on.deeper=", True), ("metadata.name=a,", True),
    ],
)  # fmt: skip
def test_fields_by_path(text: str, matches: bool) -> None:
    """A field compares as text; a missing one is empty; commas and equals signs can be escaped."""
    assert fields(text)(OBJ) is matches


def test_terms_tell_the_caller_which_fields_are_asked_for() -> None:
    """The caller decides which paths it supports."""
    assert field_terms("metadata.name=a,spec.x!=b") == (
        FieldTerm("metadata.name", True, "a"),
        FieldTerm("spec.x", False, "b"),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("metadata.name", "can't understand 'metadata.name'"), ("a in (b)", r"can't understand 'a in \(b\)'"),
        ("a=b=c", "unescaped character in value: 61"), ("a=b\\", r"invalid escape sequence: \\"),
        ("a=\\x", r"invalid escape sequence: \\x"),
    ],
)  # fmt: skip
def test_fields_that_cannot_be_read_are_named(text: str, told: str) -> None:
    """The error says which part is not understood."""
    with pytest.raises(BadSelector, match=told):
        fields(text)
