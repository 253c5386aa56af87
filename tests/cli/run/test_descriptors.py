"""The limit of open files of a long-running process."""

import resource
from collections.abc import Iterator

import pytest

from metal.cli.run.descriptors import raise_descriptor_limit


@pytest.fixture
def hard() -> Iterator[int]:
    """The soft limit is restored afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _soft(value: int, hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (value, hard))


def test_a_low_soft_limit_is_raised(hard: int) -> None:
    """To what is wanted, where the hard limit allows it."""
    _soft(256, hard)
    raise_descriptor_limit(512)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (512, hard)


def test_a_higher_soft_limit_stays(hard: int) -> None:
    """It is never lowered."""
    _soft(512, hard)
    raise_descriptor_limit(256)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (512, hard)


def test_the_hard_limit_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without privileges cannot exceed it, and starts all the same."""
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: made.append(pair))
    raise_descriptor_limit()
    assert made == [(4096, 4096)]
