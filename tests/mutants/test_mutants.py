"""Bugs that others have had are caught when they are put back; without them the same stories end well."""

import pytest

from metal.sim.invariants import InvariantViolation
from tests.mutants import bmc_bugs, boot_bugs, claim_bugs, stories
from tests.mutants.bug import BUGS, Bug
from tests.mutants.stories import PATIENCE, Restless, Story, at_rest
from tests.sim.plane import plane

pytestmark = [pytest.mark.looptime(noop_cycles=0), pytest.mark.life]
STORIES = {bug.story: bug.machines for bug in BUGS} | {stories.clock_set_back: 1}
"""The last one has no bug of another operator; `objects` puts ours back."""


async def _told(story: Story, machines: int, patience: float = PATIENCE) -> None:
    async with plane(machines, seed=7) as world:
        await story(world)
        world.check()  # what is broken by now need not be waited for
        await at_rest(world, patience)


@pytest.mark.parametrize(("story", "machines"), STORIES.items(), ids=[story.__name__ for story in STORIES])
async def test_without_a_bug_each_story_ends_well(story: Story, machines: int) -> None:
    """No invariant is broken, and once the faults are over everything is as it was asked for."""
    await _told(story, machines)


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
async def test_a_bug_that_is_put_back_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an invariant over what happened, or because something never comes to rest: the story itself judges nothing."""
    bug.switch(monkeypatch)
    with pytest.raises((InvariantViolation, Restless), match=bug.caught):
        await _told(bug.story, bug.machines, bug.patience)


def test_there_are_as_many_bugs_as_were_promised() -> None:
    """Twenty-five at least, each with a sentence that says whose bug it was."""
    assert len({bug.name for bug in BUGS}) >= 25
    assert all(bug.switch.__doc__ for bug in BUGS)
    assert stories.__doc__
    modules = {bug.switch.__module__ for bug in BUGS}
    assert modules == {module.__name__ for module in (bmc_bugs, boot_bugs, claim_bugs)}
