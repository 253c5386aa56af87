"""What an event of an Available server costs with many waiting claims: `python bench/waking.py [-n 10000]`.

In process, without an API: the handler of the claim controller's watch on Servers. "scan" compares the server with
every waiting claim, as versions before the index did; "index" asks the waiting claims by what they need.
"""

import argparse
import time
from datetime import UTC, datetime, timedelta

import msgspec

from metal.api.claim import ServerClaim, ServerClaimSpec
from metal.api.meta import ObjectMeta
from metal.api.server import Server, ServerStatus
from metal.controllers.claim import matching
from metal.controllers.claim.waiting import WaitingClaims

START = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 200


def claims(number: int, distinct: int) -> list[ServerClaim]:
    """Waiting claims with so many distinct selectors."""
    specs = [
        msgspec.convert({"serverSelector": {"matchLabels": {"rack": str(one)}}}, ServerClaimSpec)
        for one in range(distinct)
    ]
    return [
        ServerClaim(
            metadata=ObjectMeta(
                name=f"c{one}", namespace="d", uid=f"{one:08}", creation_timestamp=START + timedelta(seconds=one)
            ),
            spec=specs[one % distinct],
        )
        for one in range(number)
    ]


def measure(number: int, distinct: int) -> None:
    """Print the time of one event, both ways."""
    waiting = WaitingClaims(lambda claim: True)
    made = claims(number, distinct)
    began = time.perf_counter()
    for claim in made:
        waiting.update(None, claim)
    filled = time.perf_counter() - began
    status = ServerStatus(state="Available", power_state="Off")
    servers = [
        Server(metadata=ObjectMeta(name=f"s{one}", labels={"rack": "0"}), status=status) for one in range(ROUNDS)
    ]
    began = time.perf_counter()
    for server in servers:
        waiting.offer(server)
    index = (time.perf_counter() - began) / ROUNDS
    began = time.perf_counter()
    for claim in made:
        matching.mismatch(claim, servers[0])
    scan = time.perf_counter() - began
    print(
        f"{number} waiting claims, {distinct} distinct needs: scan {scan * 1e3:.1f} ms, index {index * 1e3:.3f} ms an "
        f"event; filling the index {filled * 1e3:.0f} ms"
    )


def main() -> None:
    """Run with one need, with a hundred, and with as many as claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", type=int, default=10_000, help="waiting claims (10000)")
    number = parser.parse_args().n
    for distinct in (1, 100, number):
        measure(number, distinct)


if __name__ == "__main__":
    main()
