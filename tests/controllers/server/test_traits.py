"""The table of traits: complete, and in agreement with the states' modules."""

from pathlib import Path

import pytest

from metal.api.server import State
from metal.controllers.server import states
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.reconciler import STATES
from metal.controllers.server.settings import ServerSettings
from metal.controllers.server.traits import EVERY_STATE, TRAITS, WAITS, WITHOUT_STATE, BMCUse, PowerOwner, traits_of


def test_every_state_has_a_row_and_a_module_of_its_name() -> None:
    """The package holds one file a state."""
    files = {path.stem for path in Path(states.__path__[0]).glob("[!_]*.py")}
    assert set(TRAITS) == set(STATES) == set(State)
    assert files == {state.value.lower() for state in State}
    assert all(module.__name__.endswith(f".{state.value.lower()}") for state, module in STATES.items())


def test_every_wait_is_described_and_belongs_to_a_state() -> None:
    """Its deadline and poll are settings of the Server controller."""
    settings = ServerSettings()
    used = {wait for traits in TRAITS.values() for wait in traits.waits} | {*EVERY_STATE, *WITHOUT_STATE}
    assert used == set(WAITS) == set(WaitFor)
    for awaited in WAITS.values():
        assert awaited.what
        assert all(isinstance(getattr(settings, name), float) for name in (awaited.deadline, awaited.poll) if name)


@pytest.mark.parametrize("state", ["Unheard", "claimed"])
def test_an_unknown_state_permits_nothing(state: str) -> None:
    """A newer version or another operator may have written it."""
    traits = traits_of(state)
    permits = (traits.claimable, traits.parkable, traits.interruptible, traits.resumable, traits.released)
    assert not any(permits)


def test_a_server_without_state_is_about_to_be_initial() -> None:
    """No state yet counts as Initial."""
    assert traits_of("") is TRAITS[State.INITIAL]


def test_only_free_servers_are_claimable() -> None:
    """What can be claimed is off by the state's own decision, and no claim uses it any more."""
    for traits in TRAITS.values():
        if traits.claimable:
            assert traits.released
            assert traits.discovered
            assert traits.power is PowerOwner.STATE
            assert traits.bmc is BMCUse.NEEDED


def test_a_maintenance_that_is_blocked_is_not_entered() -> None:
    """A state that blocks maintenances is never interrupted by one."""
    assert not [state for state, traits in TRAITS.items() if traits.blocks_maintenance and traits.interruptible]
