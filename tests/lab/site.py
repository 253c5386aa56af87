"""The environment: one switch, the operator's host, a BMC's host and another client, each in a namespace of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lab import netns
from tests.lab.netns import Namespace

BRIDGE = "br0"
HOST = "10.77.0.1"
"""The operator's address; boot server, registries and the API listen here."""
BMC_MAC = "52:54:00:77:bb:01"
NEIGHBOR_MAC = "52:54:00:77:ee:01"
NEIGHBOR = "10.77.0.66"


@dataclass(frozen=True)
class Site:
    """The namespaces of a run. The machine's NIC is connected to the operator host's bridge."""

    operator: Namespace
    bmc: Namespace
    neighbor: Namespace


@contextlib.contextmanager
def build() -> Iterator[Site]:
    """Creates the namespaces and removes them with all their processes, also after failures."""
    netns.reap_stale()
    with contextlib.ExitStack() as made:
        spaces = []
        for role in ("operator", "bmc", "neighbor"):
            space = Namespace(role)
            made.callback(space.delete)
            spaces.append(space)
        site = Site(*spaces)
        netns.bridge(site.operator, BRIDGE, f"{HOST}/24", "fd77::1/64")
        netns.cable(site.operator, BRIDGE, "to-bmc", site.bmc, BMC_MAC)
        netns.cable(site.operator, BRIDGE, "to-neighbor", site.neighbor, NEIGHBOR_MAC)
        site.neighbor.ip("address", "add", f"{NEIGHBOR}/24", "dev", "eth0")
        yield site
