"""The whole script, in the order in which it is played."""

from collections.abc import Iterator

from tests.conformance.kubectl import builtin, reading, refusals, writing
from tests.conformance.kubectl.step import Step

SCRIPT: tuple[Step, ...] = (
    *reading.DISCOVERY,
    *reading.LISTS,
    *refusals.REFUSALS,
    *writing.APPLY,
    *writing.CHANGES,
    *builtin.CREATED,
    *builtin.RIGHTS,
    *writing.DELETES,
)
CORE: tuple[Step, ...] = tuple(step for step in SCRIPT if step.core)
"""What is played with every kubectl."""


def every(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Each step, in the order of the outcomes."""
    for step in steps:
        yield step
        yield from every(step.meanwhile)


DIFFERENCES = {f"kubectl {step.line}": step.differs for step in every(SCRIPT) if step.differs}
"""Commands whose output must differ, and why; docs/differences.md lists them."""
