"""One server, up to three claims, a maintenance and every fault, in random order by hypothesis.

The invariants are checked after every step; at the end the faults are cleared, and everything becomes and stays stable.
Some examples are part of every run. METAL_EXPLORE=1 METAL_EXAMPLES=200 METAL_STEPS=20 searches for others;
--hypothesis-seed=N selects them.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.sim.mishaps import Mishaps
from tests.sim.people import People

pytestmark = pytest.mark.life
EXAMPLES = int(os.environ.get("METAL_EXAMPLES", "20"))
STEPS = int(os.environ.get("METAL_STEPS", "12"))
MINUTES = 5 + EXAMPLES
"""A busy machine takes many times the second or two that an example costs, and shrinking one takes hundreds."""


class Life(People, Mishaps):
    """Users and faults, in any order."""


TestLife = pytest.mark.timeout(60 * MINUTES)(Life.TestCase)
TestLife.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
)
