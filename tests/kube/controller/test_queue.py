"""WorkQueue: one worker per key, no key lost, delays and backoff."""

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.kube.controller.queue import QueueShutDown, WorkQueue
from tests.kube.virtual import run, settle

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_key_added_twice_is_handed_out_once() -> None:
    """Adding a key that waits already changes nothing."""
    queue: WorkQueue[str] = WorkQueue()

    queue.add("a")
    queue.add("a")

    assert len(queue) == 1
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_keys_come_out_in_the_order_they_went_in() -> None:
    """The queue is fair."""
    queue: WorkQueue[str] = WorkQueue()

    for key in "cab":
        queue.add(key)

    assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]


async def test_a_key_added_while_worked_on_comes_back_after_done() -> None:
    """The second worker gets the key only when the first has given it back."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    key = await queue.get()

    queue.add("a")
    second = asyncio.ensure_future(queue.get())
    await settle()
    waiting = not second.done()
    queue.done(key)

    assert waiting
    assert await second == "a"


async def test_done_without_a_new_add_does_not_bring_the_key_back() -> None:
    """A key is handled once per add."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")

    queue.done(await queue.get())

    assert queue.idle
    assert len(queue) == 0


async def test_of_two_delays_the_earlier_counts() -> None:
    """A later delay does not postpone, an earlier one brings forward, and the key comes once."""
    queue: WorkQueue[str] = WorkQueue()

    queue.add_after("a", 10)
    queue.add_after("a", 20)
    queue.add_after("b", 20)
    queue.add_after("b", 10)
    got = [await queue.get(), await queue.get()]

    assert (sorted(got), now()) == (["a", "b"], 10)
    for key in got:
        queue.done(key)
    await asyncio.sleep(100)
    assert len(queue) == 0


async def test_no_delay_means_now() -> None:
    """A delay of zero or less adds the key at once."""
    queue: WorkQueue[str] = WorkQueue()

    queue.add_after("a", 0)

    assert len(queue) == 1


async def test_backoff_doubles_up_to_the_cap_and_forget_starts_anew() -> None:
    """Delays lie in the upper half of 0.1, 0.2, 0.4 … seconds, at most the cap."""
    queue: WorkQueue[str] = WorkQueue(rng=random.Random(1), base=0.1, cap=1.0)

    delays = [queue.add_rate_limited("a") for _ in range(6)]
    queue.forget("a")
    again = queue.add_rate_limited("a")

    for delay, ceiling in zip([*delays, again], [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 0.1], strict=True):
        assert ceiling / 2 <= delay <= ceiling


async def test_backoff_is_per_key() -> None:
    """A key that keeps failing does not slow down another."""
    queue: WorkQueue[str] = WorkQueue(base=0.1)
    for _ in range(10):
        queue.add_rate_limited("bad")

    assert queue.add_rate_limited("good") <= 0.1
    assert (queue.failures("bad"), queue.failures("good")) == (10, 1)


async def test_a_server_may_ask_for_a_longer_delay() -> None:
    """Retry-After raises the backoff."""
    assert WorkQueue[str]().add_rate_limited("a", at_least=7.0) == 7.0


async def test_thousands_of_failures_do_not_overflow() -> None:
    """The exponent is bounded."""
    queue: WorkQueue[str] = WorkQueue(cap=60.0)

    delays = [queue.add_rate_limited("a") for _ in range(3000)]

    assert delays[-1] <= 60.0


async def test_shut_down_wakes_every_waiter_and_refuses_new_keys() -> None:
    """No worker hangs in `get`, no timer fires, and nothing is handed out any more."""
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    queue.add_after("later", 5)
    await settle()

    queue.shut_down()
    queue.add("late")
    queue.add_after("later", 1)

    assert all(isinstance(end, QueueShutDown) for end in await asyncio.gather(*waiting, return_exceptions=True))
    await asyncio.sleep(10)
    assert repr(queue) == "<WorkQueue closed ready=0 processing=0 delayed=0>"


async def test_a_cancelled_waiter_passes_its_key_on() -> None:
    """A key that woke a worker which is cancelled in the same instant goes to another worker."""
    queue: WorkQueue[str] = WorkQueue()
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await settle()

    queue.add("a")
    first.cancel()

    assert await asyncio.wait_for(second, 1) == "a"


async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    """A key added after a waiter went away reaches the next one."""
    queue: WorkQueue[str] = WorkQueue()
    gone = asyncio.ensure_future(queue.get())
    await settle()
    gone.cancel()
    await settle()

    queue.add("a")

    assert await asyncio.wait_for(queue.get(), 1) == "a"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "after", "limited", "sleep", "cancel"]),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.1, 3.0]),
    ),
    max_size=40,
)


@given(STEPS, st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_no_key_is_lost_and_none_runs_twice_at_once(
    steps: list[tuple[str, int, float]], workers: int, seed: int
) -> None:
    """In every order of add, delay, retry and cancel, each key is handled after its last add, by one worker."""
    run(_check_queue(steps, workers, random.Random(seed)))


async def _check_queue(steps: list[tuple[str, int, float]], workers: int, rng: random.Random) -> None:
    queue: WorkQueue[int] = WorkQueue(rng=random.Random(0))
    added: dict[int, float] = {}
    handled: dict[int, float] = {}
    running: Counter[int] = Counter()

    async def work() -> None:
        while True:
            key = await queue.get()
            handled[key] = now()
            running[key] += 1
            assert running[key] == 1
            try:
                await asyncio.sleep(rng.choice([0, 0.05, 2]))
            finally:
                running[key] -= 1
                queue.done(key)

    crew = [asyncio.ensure_future(work()) for _ in range(workers)]
    for step, key, delay in steps:
        if step == "sleep":
            await asyncio.sleep(delay)
        elif step == "cancel":
            crew[0].cancel()
            crew = [*crew[1:], asyncio.ensure_future(work())]
        else:
            _add(queue, step, key, delay)
            added[key] = now()
    await asyncio.sleep(1000)
    assert all(handled.get(key, -1) >= moment for key, moment in added.items())
    assert queue.idle
    for task in crew:
        assert not task.done()
        task.cancel()
    await asyncio.gather(*crew, return_exceptions=True)


def _add(queue: WorkQueue[int], step: str, key: int, delay: float) -> None:
    match step:
        case "add":
            queue.add(key)
        case "after":
            queue.add_after(key, delay)
        case "limited":
            queue.add_rate_limited(key)
