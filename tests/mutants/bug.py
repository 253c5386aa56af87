"""A known bug of another operator: the switch that puts it back, the story in which it shows, and what reports it."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from metal.api.tenancy import Tenancy
from tests.mutants.stories import PATIENCE, Story

Switch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Bug:
    """One bug: its switch puts it back; an invariant is violated, or the story does not end in time."""

    name: str
    switch: Switch
    story: Story
    caught: str
    """A regular expression of what the violation says."""
    machines: int = 1
    patience: float = PATIENCE
    """Seconds of virtual time; less where a bug causes requests without a pause, which take real time."""


BUGS: list[Bug] = []


def bug(story: Story, caught: str, machines: int = 1, patience: float = PATIENCE) -> Callable[[Switch], Switch]:
    """Add a bug; the switch's docstring describes it."""

    def add(switch: Switch) -> Switch:
        BUGS.append(Bug(switch.__name__, switch, story, caught, machines, patience))
        return switch

    return add


def unbooted(known: Tenancy) -> Tenancy:
    """The record without the boot of its claim."""
    return msgspec.structs.replace(known, boot=None)


async def nothing(*_: object, **__: object) -> None:
    """In the place of a step that a bug leaves out."""
