"""The difference of two statuses that a scope writes."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from metal.api.meta import Condition
from metal.api.server import Failure, ServerStatus
from metal.controllers.shared.scope import _changes
from metal.kube.meta import mergepatch

CONDITIONS = st.lists(st.builds(Condition, type=st.sampled_from("ab"), status=st.sampled_from(["True", "False"])))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["", "Available", "Reserved"]),
        "boot_attempts": st.integers(0, 2),
        "failure": st.none() | st.builds(Failure, state=st.sampled_from("xy"), reason=st.just("r")),
        "conditions": CONDITIONS.map(tuple),
    },
)


@given(FIELDS, FIELDS)
def test_the_patch_leads_from_the_old_status_to_the_new(before: dict[str, Any], changes: dict[str, Any]) -> None:
    """Unchanged fields are not compared, and the result is as if all were."""
    old = ServerStatus(**before)
    new = msgspec.structs.replace(old, **changes)
    patch = _changes(old, new)
    assert patch == mergepatch.diff(msgspec.to_builtins(old), msgspec.to_builtins(new))
    assert mergepatch.apply(msgspec.to_builtins(old), patch) == msgspec.to_builtins(new)


def test_an_equal_value_written_anew_is_no_change() -> None:
    """A pass with the same result writes nothing."""
    old = ServerStatus(conditions=(Condition(type="Ready", status="True"),))
    new = msgspec.structs.replace(old, conditions=(Condition(type="Ready", status="True"),))
    assert _changes(old, new) == {}
