"""Two machines, several BMC objects, Servers and claims for them, in random order by hypothesis.

The invariants over machines and drives are checked after every step; at the end an administrator decides what waits for
a decision, and everything becomes and stays stable. METAL_EXPLORE=1 METAL_EXAMPLES=200 METAL_STEPS=15 searches further.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.sim.lives.administrator import Administrator
from tests.sim.lives.restores import Restores

pytestmark = pytest.mark.life
EXAMPLES = int(os.environ.get("METAL_EXAMPLES", "12"))
STEPS = int(os.environ.get("METAL_STEPS", "10"))
MINUTES = 5 + EXAMPLES


class Lives(Restores, Administrator):
    """Technicians, clients and restores, in any order."""


TestLives = pytest.mark.timeout(60 * MINUTES)(Lives.TestCase)
TestLives.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
)
