"""UUIDs of machines."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.machine.uuids import canonical, spellings

UUID = "1189d5f5-eca9-4fd2-87ce-98ef08a6bca7"


@given(st.uuids())
def test_both_byte_orders_lead_to_each_other(value: uuid.UUID) -> None:
    """Swapping twice returns the same UUID."""
    forms = spellings(str(value).upper())
    assert forms[0] == str(value)
    assert spellings(forms[-1])[-1] == forms[0]


@pytest.mark.parametrize("text", ["", "x", f"{{{UUID}}}", UUID.replace("-", ""), f"urn:uuid:{UUID}"])
def test_other_forms_are_refused(text: str) -> None:
    """Only one form is accepted: a looser one could denote two machines."""
    with pytest.raises(ValueError, match="8-4-4-4-12"):
        canonical(text)
