"""The garbage collector of long-lived processes."""

import gc

from metal.cli.run.gc_settings import MIDDLE, OLD, YOUNG, raise_gc_thresholds


def test_the_collector_runs_seldom_and_stays_on() -> None:
    """Cycles, such as those of exceptions, are still found."""
    before = gc.get_threshold()
    try:
        raise_gc_thresholds()
        assert gc.get_threshold() == (YOUNG, MIDDLE, OLD)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
