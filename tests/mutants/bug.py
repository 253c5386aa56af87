"""What a bug is that others have had: a small switch that puts it back, and the story that gives it its chance."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.mutants.stories import PATIENCE, Story

Switch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """One bug: its switch puts it back; caught by an invariant, or because something never comes to rest."""

    name: str
    switch: Switch
    story: Story
    caught: str
    """A regular expression of what the violation says."""
    machines: int = 1
    patience: float = PATIENCE
    """Seconds of virtual time; less for what never sits still, where they cost real ones."""


BUGS: list[Bug] = []


def bug(story: Story, caught: str, machines: int = 1, patience: float = PATIENCE) -> Callable[[Switch], Switch]:
    """Add a bug; the switch's docstring describes it."""

    def add(switch: Switch) -> Switch:
        BUGS.append(Bug(switch.__name__, switch, story, caught, machines, patience))
        return switch

    return add
