"""How long a BMC takes to answer: lognormal, as measured delays mostly are, cut off far out."""

import math
import random
from dataclasses import dataclass

_MOST = 8.0


@dataclass(frozen=True)
class Latency:
    """Delays in seconds around a median; never more than eight times as much."""

    median: float
    spread: float = 0.4

    def sample(self, rng: random.Random) -> float:
        """One delay."""
        if self.median <= 0:
            return 0.0
        return min(self.median * _MOST, rng.lognormvariate(math.log(self.median), self.spread))
