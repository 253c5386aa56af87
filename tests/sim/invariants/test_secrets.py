"""Secrets are detected in objects and in the history, wherever they do not belong."""

import pytest

from metal.api.core import ConfigMap
from metal.api.meta import ObjectMeta
from metal.sim.invariants import (
    InvariantViolation,
    check_secrets,
)
from tests.sim.invariants.story import Story


@pytest.mark.parametrize("form", ["hunter2-hunter2", "aHVudGVyMi1odW50ZXIy"])
def test_a_secret_in_an_object_is_found(form: str) -> None:
    """A password in a ConfigMap is found, plain and in base64, and the message does not repeat it."""
    story = Story()
    story.history.changed("ConfigMap", "x", "cm", ConfigMap(metadata=ObjectMeta(name="cm"), data={"a": f"b{form}c"}))
    with pytest.raises(InvariantViolation, match="ConfigMap x/cm") as caught:
        check_secrets(story.history, {"hunter2-hunter2"})
    assert form not in str(caught.value)


def test_a_secret_in_the_history_is_found() -> None:
    """The history itself must not contain a token either."""
    story = Story().machine("fetch", path="/ipxe?token=abcdefgh")
    with pytest.raises(InvariantViolation, match="history of machine"):
        check_secrets(story.history, {"abcdefgh"})


def test_secrets_may_live_in_secrets() -> None:
    """Secrets may contain them, and short texts match by chance."""
    story = Story()
    story.history.changed("BMCSecret", "", "s", {"data": {"password": "hunter2-hunter2"}})
    story.machine("power", state="On")
    check_secrets(story.history, {"hunter2-hunter2", "On"})
