"""What holds for every test."""

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
import structlog
from hypothesis import settings

from tests.kubeapi.cluster import KubeCluster, running

pytest_plugins = ["tests.ran"]

P = ParamSpec("P")
T = TypeVar("T")

# On Python 3.11 asking for "the current loop" before one was ever set makes a loop that nobody closes; pytest-asyncio
# asks, and the ResourceWarning is an error here. Saying "there is none" first avoids it.
asyncio.set_event_loop(None)

# A background job of a shell without job control ignores SIGINT, and so would every program that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The gate tries the same examples every time: a failure is of the change at hand. METAL_EXPLORE=1 looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("METAL_EXPLORE") else "steady")


# By default structlog formats each traceback with rich and highlights its source: 0.1 s of CPU time each.
_CONSOLE = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
_PROCESSORS = [*structlog.get_config()["processors"][:-1], _CONSOLE]


@pytest.fixture(autouse=True)
def _plain_logging() -> Iterator[None]:
    """Commands that run in process set up logging for themselves; the next test begins without it."""
    structlog.configure(processors=_PROCESSORS)
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _no_threads_in_virtual_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a thread works, virtual time goes on as fast as the machine is slow: stories would depend on its load."""
    marked = request.node.get_closest_marker
    if marked("looptime") is not None and marked("threads") is None:
        monkeypatch.setattr(asyncio, "to_thread", _at_once)


async def _at_once(work: Callable[P, T], /, *args: P.args, **more: P.kwargs) -> T:
    return work(*args, **more)


_BUILT = ("kubectl", "butane")
"""Programs that `make` builds when they are not on this machine."""
_LEFT_OUT: dict[str, int] = {}

for _name in _BUILT:
    _found = sorted(Path(__file__).parent.parent.glob(f".cache/{_name}/*/{_name}"))
    if _found and not os.environ.get(_name.upper()) and not shutil.which(_name):
        os.environ[_name.upper()] = str(_found[-1])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collected tests live to the end: a garbage collection that traverses them all finds nothing, in 0.3 s each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def cluster() -> Iterator[KubeCluster]:
    """A real kube-apiserver for tests marked `kube`; one for the whole session."""
    with running() as started:
        yield started


def pytest_itemcollected(item: pytest.Item) -> None:
    """Virtual time moves as soon as nothing is left to run: 42 idle turns of the loop first are half a test's time."""
    if next(item.iter_markers("looptime"), None) is not None:
        item.add_marker(pytest.mark.looptime(noop_cycles=0), append=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose foreign program is not on this machine, unless METAL_REQUIRE=all (as in CI)."""
    if os.environ.get("METAL_REQUIRE") == "all":
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        missing = [p for mark in item.iter_markers("needs") for p in mark.args if not _present(p)]
        for program in missing:
            _LEFT_OUT[program] = _LEFT_OUT.get(program, 0) + 1
        (left_out if missing else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


_PACKAGES = {
    "promtool": "prometheus",
    "sbverify": "sbsigntool",
    "mcopy": "mtools",
    "fsck.vfat": "dosfstools",
    "/usr/lib/systemd/boot/efi/linuxx64.efi.stub": "systemd-boot-efi",
}
"""Debian packages of programs that are called otherwise."""


def _present(program: str) -> bool:
    named = os.environ.get(program.upper().replace("-", "_"), "")
    return bool(named and os.access(named, os.X_OK)) or shutil.which(program) is not None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what did not run, and how to make it run."""
    for program, count in sorted(_LEFT_OUT.items()):
        way = f"make {program}" if program in _BUILT else f"apt-get install {_PACKAGES.get(program, program)}"
        terminalreporter.write_line(f"{count} tests did not run: {program} is not on this machine ({way})", yellow=True)
