"""How many requests of each type a BMC answered in its busiest minute."""

from datetime import UTC, datetime, timedelta

from metal.sim.bmc.load import Load

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_reads_and_writes_are_counted_by_the_minute() -> None:
    """A minute begins with the first request after the former one; the busiest one stays."""
    load = Load()
    for second, method in enumerate(["GET", "HEAD", "POST"] * 20):
        load.count(method, NOW + timedelta(seconds=second))
    assert load.busiest == {"reads": 40, "writes": 20}
    load.count("PATCH", NOW + timedelta(seconds=90))
    load.count("DELETE", NOW + timedelta(seconds=149))
    assert load.busiest == {"reads": 40, "writes": 20}
    assert "'reads': 40" in repr(load)
