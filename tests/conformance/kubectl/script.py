"""The whole script, in the order in which it is played."""

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
