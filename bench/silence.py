"""What BMCs that die cost the others: `python bench/silence.py [-n 10000] [--dead 1000] [--workers 64]`.

In virtual time, with the controller's queue and workers and the pool's guard for silent BMCs: a check every 60 s, 100
ms for an answer, and the guard's time until a connection attempt to a dead BMC is given up. Prints how many checks the
living BMCs got in each minute, as a share of those without dead BMCs: after a start that knows nothing of the dead
ones, after a restart, when the status of their objects says that they did not answer, and after the dead ones, which
had answered until then, die at the same moment.
"""

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Mapping

import looptime

from metal.bmc.errors import BMCError, BMCUnreachable
from metal.bmc.redfish.silent import SilentBMCs
from metal.kube.controller.controller import Controller, Requeue, Result
from metal.kube.meta.objects import Key
from metal.redfish import Response

INTERVAL, ANSWER = 60.0, 0.1
MINUTES = 5


class Wire:
    """A BMC that answers, or whose connection attempt is given up."""

    def __init__(self, name: str, gate: SilentBMCs) -> None:
        self.name, self.gate, self.dead = name, gate, False

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None, timeout: float
    ) -> Response:
        await asyncio.sleep(self.gate.connect_timeout(self.name) if self.dead else ANSWER)
        if self.dead:
            raise BMCUnreachable("no connection")
        return Response(200)

    async def aclose(self) -> None: ...


async def run(count: int, dead: int, workers: int, dies_at: float, known: bool) -> list[int]:
    """Checks of living BMCs in each minute from the moment at which the others are dead."""
    gate, rng = SilentBMCs(max(1, workers // 4)), random.Random(1)
    wires = {name: Wire(name, gate) for name in (f"bmc-{n}" for n in range(count))}
    doomed = set(random.Random(1).sample(sorted(wires), dead))
    guarded = {name: gate.guard(name, wire) for name, wire in wires.items()}
    for name in doomed if known else ():
        gate.expect(name, BMCUnreachable("no connection before the restart"))
    checks: Counter[int] = Counter()
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def check(key: Key) -> Result:
        try:
            await guarded[key.name].request("GET", "/", headers={}, timeout=30)
            checks[int((loop.time() - began - dies_at) // 60)] += key.name not in doomed
        except BMCError:
            pass
        return Requeue(INTERVAL * rng.uniform(0.8, 1.2))

    controller = Controller("bmc", check, workers=workers, rng=random.Random(1))
    for name in wires:
        controller.queue.add(Key(name))
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(dies_at)
    for name in doomed:
        wires[name].dead = True
    await asyncio.sleep(60 * MINUTES)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [checks[minute] for minute in range(MINUTES)]


def measure(what: str, count: int, dead: int, workers: int, dies_at: float, known: bool = False) -> None:
    """Print one scenario beside the same one without dead BMCs."""
    results = []
    for number, doomed in ((count - dead, 0), (count, dead)):
        with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
            results.append(runner.run(run(number, doomed, workers, dies_at, known)))
    alone, beside = results
    shares = ", ".join(f"{100 * b / a:.0f} %" for a, b in zip(alone, beside, strict=True))
    print(f"{what}, {dead} dead of {count}, {workers} workers: checks of the others by minute {shares}")


def main() -> None:
    """Both scenarios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=10_000, help="BMCs (10000)")
    parser.add_argument("--dead", type=int, default=1_000, help="of which are dead (1000)")
    parser.add_argument("--workers", type=int, default=64, help="bmc.workers (64)")
    args = parser.parse_args()
    measure("first start", args.n, args.dead, args.workers, 0.0)
    measure("restart", args.n, args.dead, args.workers, 0.0, known=True)
    measure("all at once", args.n, args.dead, args.workers, 300.0)


if __name__ == "__main__":
    main()
