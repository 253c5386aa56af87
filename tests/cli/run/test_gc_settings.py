"""Thresholds of the garbage collector of long-running processes."""

import gc

from metal.cli.run.gc_settings import MIDDLE, OLD, YOUNG, raise_gc_thresholds


def test_the_collector_runs_less_often_and_stays_enabled() -> None:
    """The collector is enabled and finds cycles, such as those of exceptions."""
    before = gc.get_threshold()
    try:
        raise_gc_thresholds()
        assert gc.get_threshold() == (YOUNG, MIDDLE, OLD)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)


def test_a_collection_of_the_middle_generation_is_short() -> None:
    """It traverses what three young collections left: no other thread, and so not the event loop, runs meanwhile."""
    before, traversed, kept = gc.get_threshold(), [], []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 1:
            traversed.append(len(gc.get_objects(0)) + len(gc.get_objects(1)))

    gc.collect()
    gc.callbacks.append(count)
    try:
        raise_gc_thresholds()
        kept = [[number] for number in range(500_000)]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
    assert len(kept) == 500_000
    assert len(traversed) >= 5
    assert max(traversed) <= 3.1 * YOUNG
