"""Fixtures of the lab: the directory of a run, and the message about missing packages."""

import importlib.util
import os
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.lab import preflight, story
from tests.lab import site as places
from tests.lab.run import GENERIC, IMAGES, Run
from tests.lab.site import Site
from tests.lab.story import Chain


def refusal() -> str:
    """What to do before the lab can run, or an empty string."""
    if lacking := preflight.missing("lab"):
        return lacking
    if importlib.util.find_spec("libvirt") is None:
        return "libvirt-python is missing: make lab installs it (tools/uv sync --locked --group lab)"
    if not all(
        (folder / name / "index.json").exists() for folder in (IMAGES, GENERIC) for name in ("discovery", "demo")
    ):
        return "the images are missing: run make lab-images"
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record a failure for the fixtures."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        if item.parent:
            item.parent.stash[FAILED] = True
    return report


FAILED = pytest.StashKey[bool]()


SUMMARY = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print durations and the location of the logs of failures."""
    for line in config.stash.get(SUMMARY, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="module")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Add a line to the summary."""
    return request.config.stash.setdefault(SUMMARY, []).append


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The namespaces of one module's run."""
    with places.build() as built:
        yield built


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, say: Callable[[str], None]) -> Iterator[Run]:
    """The directory and processes of one module's run; logs are kept when a test failed or METAL_LAB_KEEP is set."""
    if needed := refusal():
        pytest.fail(needed, pytrace=False)
    made = Run(request.module.__name__.rpartition(".")[2])
    yield made
    failed = request.node.stash.get(FAILED, False)
    made.close(keep=failed or bool(os.environ.get("METAL_LAB_KEEP")))
    if failed:
        say(f"logs of every part: {made.folder}")


@pytest.fixture(scope="module")
def chain(run: Run, site: Site) -> Iterator[Chain]:
    """The control plane, the registry and a machine, before its BMC is connected."""
    with story.begin(run, site) as begun:
        yield begun
