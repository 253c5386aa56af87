"""What a user sees when DHCP, boot server, registry or the registry of images fail: rows of docs/failures.md."""

import asyncio

import pytest

from metal.api.core import SECRET
from metal.config.options import Sanitization
from tests.sim.failing import FailingPlane, Fault, Row, at, refused
from tests.sim.failures import check, live
from tests.sim.plane import KINDS

pytestmark = pytest.mark.looptime
ERASED = {"sanitization": Sanitization()}

def away(service: str, ill: bool = False) -> Fault:
    async def begin(world: FailingPlane) -> None:
        (world.lines.ill if ill else world.lines.away).add(getattr(world.config, service))
    async def mend(world: FailingPlane) -> None:
        (world.lines.ill if ill else world.lines.away).clear()
    return Fault(begin, mend)

async def _no_bmc_leases(world):
    world.fleet._bmc_leases = lambda: []
async def _bmc_leases(world):
    del world.fleet._bmc_leases
async def _slow(world):
    world.registry.delay = 400.0
async def _fast(world):
    world.registry.delay = 0.0

async def _lose_secret(world):
    await world.client.delete(SECRET, "c1", "default")
async def _spoil_secret(world):
    await world.client.patch(SECRET, "c1", {"data": {"ignition": "bm9uc2Vuc2U="}}, "default")

ROWS = (
    Row("BMC without a lease", "enrolment", inject=Fault(_no_bmc_leases, _bmc_leases)),
    *at("enrolment claim", "no_lease", minutes=32),
    Row("no_lease", "release", config=ERASED, minutes=32),
    *at("enrolment claim", "unreported_lease"),
    Row("unreported_lease", "release", config=ERASED),
    *at("enrolment claim", "no_boot_server", minutes=32),
    Row("no_boot_server", "release", config=ERASED, minutes=32),
    *at("enrolment claim", "boot server away", inject=away("boot_url"), minutes=10),
    *at("discovery boot", "boot server away for a moment", inject=away("boot_url"), minutes=0.5),
    *at("discovery boot", "boot server answers 500", inject=away("boot_url", True), minutes=0.5),
    *at("report erasure", "registry away", inject=away("registry_url"), minutes=10),
    *at("report erasure", "registry answers 500", inject=away("registry_url", True), minutes=10),
    *at("enrolment", "no_registry", minutes=32),
    Row("no_registry", "release", config=ERASED, minutes=32),
    *at("inventory claim", "image registry away", inject=refused("RegistryUnreachable", "no connection")),
    Row("image registry away", "release", inject=refused("RegistryUnreachable", "no connection"), config=ERASED),
    *at("claim", "image registry answers 500", inject=refused("RegistryMisbehaves", "HTTP 500"), minutes=5),
    *at("inventory claim", "image registry slow", inject=Fault(_slow, _fast), minutes=10),
    *at("inventory claim", "image registry denies", inject=refused("RegistryDenied", "no", transient=False)),
    *at("inventory claim", "image is missing", inject=refused("ImageNotFound", "no", transient=False)),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_a_service_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
