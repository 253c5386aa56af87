"""The garbage collector of long-lived processes."""

import gc

from metal.cli.run.garbage import MIDDLE, OLD, YOUNG, collect_seldom


def test_the_collector_runs_seldom_and_stays_on() -> None:
    """Cycles, such as those of exceptions, are still found."""
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_threshold() == (YOUNG, MIDDLE, OLD)
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)
