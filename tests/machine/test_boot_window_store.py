"""Boot windows in the API."""

import asyncio
import itertools
import random
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.boot_window import BootWindow, Phase, Trust
from metal.api.common import ObjectRef
from metal.kube.client.errors import Conflict
from metal.kube.meta import mergepatch
from metal.machine.boot_window import Refused, contest, serve_script, succeed
from metal.machine.boot_window_store import BootWindowStore, Busy, window_patch
from metal.machine.directory import ListingDirectory
from tests.machineapi.world import UUID, World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WINDOWS = st.builds(
    BootWindow,
    id=st.text("ab", min_size=1, max_size=3),
    purpose=st.sampled_from(["Discovery", "Claim", "Maintenance"]),
    config_ref=st.just(ObjectRef(namespace="n", name="c")),
    phase=st.sampled_from([phase.value for phase in Phase]),
    opened_at=st.just(NOW),
    expires_at=st.just(NOW),
    token_digest=st.sampled_from(["", "x", "y"]),
    report_token_digest=st.sampled_from(["", "z"]),
    script_served_at=st.sampled_from([None, NOW]),
)


@given(st.none() | WINDOWS, WINDOWS)
def test_a_patch_turns_one_window_into_the_other(old: BootWindow | None, new: BootWindow) -> None:
    """An empty field is removed explicitly: a token that is left out of a merge patch would stay valid."""
    before = None if old is None else msgspec.to_builtins(old)
    after = mergepatch.apply(before, window_patch(old, new))
    assert msgspec.convert(after, BootWindow) == new


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    await made.populate()
    await made.open()
    return made


@pytest.mark.looptime
@pytest.mark.parametrize(("purpose", "data"), [("Claim", "Dirty"), ("Discovery", "Clean"), ("Maintenance", "Clean")])
async def test_the_first_script_of_a_claim_and_dirty_data_are_one_write(world: World, purpose: str, data: str) -> None:
    """Nothing of a tenant reaches a machine whose record still says Clean."""
    await world.open(purpose)
    clean = {"tenancy": {"data": "Clean", "since": world.clock().isoformat(), "sanitization": "Clear"}}
    await world.api.patch_status(world.kinds.server, "s1", {"status": clean})
    windows = BootWindowStore(world.api, world.kinds, ListingDirectory(world.api, world.kinds), world.clock)
    served = await windows.change(
        await world.server(),
        lambda w: serve_script(w, world.clock(), token="t", client="192.0.2.1", lease_known=True, trust=Trust.LEASE),
    )
    assert served.status.tenancy.data == data
    assert served.status.tenancy.sanitization == ("" if data == "Dirty" else "Clear")


@pytest.mark.looptime
async def test_a_lost_race_is_decided_again_on_the_newest_version(world: World) -> None:
    """The second change sees the result of the first."""
    windows = BootWindowStore(world.api, world.kinds, ListingDirectory(world.api, world.kinds), world.clock)
    stale = await world.server()
    await windows.change(stale, lambda window: contest(_there(window)))

    def only_open(window: BootWindow | None) -> BootWindow:
        if _there(window).phase != Phase.OPEN:
            raise Refused("BootWindowClosed", "over")
        return succeed(_there(window))

    with pytest.raises(Refused):
        await windows.change(stale, only_open)
    assert (await world.window()).phase == "Contested"


@pytest.mark.looptime
async def test_endless_conflicts_end_in_busy(world: World) -> None:
    """Nothing was decided; the client may retry."""
    windows = BootWindowStore(world.api, world.kinds, ListingDirectory(world.api, world.kinds), world.clock)
    world.api.faults.next("patch_status", *(Conflict("changed") for _ in range(20)))
    with pytest.raises(Busy, match="s1"):
        await windows.change(await world.server(), lambda window: contest(_there(window)))
    assert await windows.find(UUID) is not None
    assert (await world.window()).phase == "Open"


@pytest.mark.looptime
async def test_the_pauses_between_attempts_grow_and_stay_short(world: World) -> None:
    """Concurrent writers can finish, and the machine gets its answer in time."""
    loop = asyncio.get_running_loop()
    windows = BootWindowStore(
        world.api, world.kinds, ListingDirectory(world.api, world.kinds), world.clock, random.Random(1)
    )
    asked: list[float] = []

    def step(window: BootWindow | None) -> BootWindow:
        asked.append(loop.time())
        return contest(_there(window))

    world.api.faults.next("patch_status", *(Conflict("changed") for _ in range(5)))
    await windows.change(await world.server(), step)
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert len(pauses) == 5
    assert all(0.009 * 2**n < pause <= 0.021 * 2**n for n, pause in enumerate(pauses))


def _there(window: BootWindow | None) -> BootWindow:
    assert window is not None
    return window
