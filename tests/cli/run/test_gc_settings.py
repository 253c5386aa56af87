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
