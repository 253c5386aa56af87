"""Files that the process may open."""

import resource

import pytest

from metal.sim.bmc.http import allow_files


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "expected"),
    [
        (1024, 20_000, 65_536, 20_000),
        (1024, 1 << 20, 65_536, 65_536 + 1024),
        (1024, resource.RLIM_INFINITY, 10, 1034),
        (20_000, 20_000, 10, 20_000),
    ],
)
def test_as_many_files_as_wanted_or_allowed(
    soft: int, hard: int, wanted: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hard limit is respected, and the limit is never reduced."""
    now = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: now.append(limits))
    allow_files(wanted)
    assert now[-1] == (expected, hard)
