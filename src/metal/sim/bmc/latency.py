"""Response times of a BMC: lognormal, as most measured latencies are, with an upper bound."""

import math
import random
from dataclasses import dataclass

_MOST = 8.0


@dataclass(frozen=True)
class Latency:
    """Delays in seconds around a median, at most eight times the median."""

    median: float
    spread: float = 0.4

    def sample(self, rng: random.Random) -> float:
        """One delay."""
        if self.median <= 0:
            return 0.0
        return min(self.median * _MOST, rng.lognormvariate(math.log(self.median), self.spread))
