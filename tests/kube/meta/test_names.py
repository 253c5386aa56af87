"""Rules for names and labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.kube.meta.names import is_label, is_subdomain, key_fault, label_value_fault


@given(st.text("abzAZ09.-_\n", max_size=70))
def test_a_label_is_a_short_subdomain_without_dots(text: str) -> None:
    """A text without dots of at most 63 characters is a label exactly when it is a subdomain."""
    assert is_label(text) == (is_subdomain(text) and "." not in text and len(text) <= 63)


@pytest.mark.parametrize(
    ("key", "fault"),
    [
        ("app", ""),
        ("example.com/App_1", ""),
        ("x" * 63, ""),
        ("", "name part must be non-empty"),
        ("example.com/", "name part must be non-empty"),
        ("x" * 64, "name part must be no more than 63 bytes"),
        ("-a", "name part must consist of alphanumeric characters"),
        ("a\n", "name part must consist of alphanumeric characters"),
        ("Example.com/a", "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ("/a", "prefix part a lowercase RFC 1123 subdomain must consist of"),
    ],
)
def test_keys(key: str, fault: str) -> None:
    """A key is a name of at most 63 characters, after an optional domain and a slash."""
    assert key_fault(key).startswith(fault)
    assert bool(key_fault(key)) is bool(fault)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", ""),
        ("Web_1.x", ""),
        ("x" * 63, ""),
        ("x" * 64, "must be no more than 63 bytes"),
        ("-a", "a valid label must be an empty string or consist of"),
        ("a b", "a valid label must be an empty string or consist of"),
    ],
)
def test_values_of_labels(value: str, fault: str) -> None:
    """A value is empty or at most 63 alphanumeric characters, with '-', '_' and '.' between them."""
    assert label_value_fault(value).startswith(fault)
    assert bool(label_value_fault(value)) is bool(fault)
