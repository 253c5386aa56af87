"""Sizes as Kubernetes quantities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.machine.quantity import quantity

FACTORS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


@pytest.mark.parametrize(
    ("size", "text"),
    [(96 << 30, "96Gi"), (1 << 40, "1Ti"), (1536 << 20, "1536Mi"), (480 * 10**9, "468750000Ki"), (1000, "1000"),
     (0, ""), (-5, "")],
)  # fmt: skip
def test_the_largest_unit_that_divides_is_taken(size: int, text: str) -> None:
    """Nothing is rounded, and 0 is empty."""
    assert quantity(size) == text


@given(st.integers(1, 1 << 62))
def test_a_quantity_is_exact(size: int) -> None:
    """Read back, it is the same number of bytes."""
    text = quantity(size)
    digits = text.rstrip("KMGTi")
    assert int(digits) * FACTORS[text.removeprefix(digits)] == size
