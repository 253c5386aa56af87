"""A known bug of another operator: the switch that puts it back, the story in which it shows, and what reports it."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from metal.api.tenancy import Tenancy
from metal.controllers.claim import reconciler as claims
from metal.controllers.server.tenancy.adoption import lost_status, outdated_status
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


def disable_correction_of_records(patch: pytest.MonkeyPatch) -> None:
    """A record without its boot is corrected from the claim and the annotation, which hides some bugs."""
    patch.setattr(claims, "_is_outdated", lambda *_: False)
    patch.setattr(outdated_status, "_has_booted", lambda _: False)
    patch.setattr(lost_status, "annotation", lambda _: None)


async def nothing(*_: object, **__: object) -> None:
    """In the place of a step that a bug leaves out."""
