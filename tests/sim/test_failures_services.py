"""What a user sees when DHCP, boot server, registry or the registry of images fail: rows of docs/failures.md."""

import base64

import pytest

from metal.api.core import SECRET
from metal.boot.errors import ImageError
from metal.sim.machine.machine import Machine
from tests.sim.failing import ERASED, Act, FailingPlane, Fault, Row, at
from tests.sim.failures import check, live
from tests.sim.plane import IGNITION, KINDS

pytestmark = [pytest.mark.looptime, pytest.mark.life]
AGAIN = "Ready=False BootRetry, Event NetworkBootFailed"
UNREADY = "Ready=False BootConfigurationNotReady, Error BootConfigurationNotReady"
INVALID = (
    "ServerBootConfiguration: ImageValidation=False ValidationFailed, ServerBootConfiguration: Event ValidationFailed"
)


def away(service: str, *, ill: bool = False) -> Fault:
    """Nobody answers there any more; or what answers is ill."""

    async def begin(world: FailingPlane) -> None:
        where = world.lines.ill if ill else world.lines.away
        where.add(getattr(world.config, service))

    async def mend(world: FailingPlane) -> None:
        world.lines.ill.clear()
        world.lines.away.clear()

    return Fault(begin, mend)


def refused(reason: str, message: str, *, transient: bool = True) -> Fault:
    """The registry of images fails in this way, as the client of registries words it."""

    async def begin(world: FailingPlane) -> None:
        world.registry.failure = ImageError(reason, message, transient=transient)

    async def mend(world: FailingPlane) -> None:
        world.registry.failure = None

    return Fault(begin, mend)


def slow(seconds: float) -> Fault:
    """The registry of images takes its time."""

    async def begin(world: FailingPlane) -> None:
        world.registry.delay = seconds

    async def mend(world: FailingPlane) -> None:
        world.registry.delay = 0.0

    return Fault(begin, mend)


def no_leases() -> Fault:
    """No BMC has an address, and nobody hears of any."""
    hidden: list[Machine] = []

    async def begin(world: FailingPlane) -> None:
        hidden[:], world.fleet.machines[:] = world.fleet.machines, []

    async def mend(world: FailingPlane) -> None:
        world.fleet.machines[:] = hidden
        await world.announce()

    return Fault(begin, mend)


async def _nothing_is_known(world: FailingPlane) -> None:
    assert not (await world.client.list(KINDS.endpoint)).items


async def _unreport(world: FailingPlane) -> None:
    world.machine.faults.unreported_lease = True


async def _report(world: FailingPlane) -> None:
    world.machine.faults.unreported_lease = False


def secret(changed: Act) -> Fault:
    """What becomes of the Secret with the Ignition as soon as it is there; mended, it is as it was."""

    async def begin(world: FailingPlane) -> None:
        world.claimed = changed

    async def mend(world: FailingPlane) -> None:
        body = {"metadata": {"name": "c1", "namespace": "default"}, "stringData": {"ignition": IGNITION}}
        await world.client.apply(SECRET, body, manager="test")

    return Fault(begin, mend)


async def _delete(world: FailingPlane) -> None:
    await world.client.delete(SECRET, "c1", "default")


async def _spoil(world: FailingPlane) -> None:
    body = {"data": {"ignition": base64.b64encode(b'{"ignition": {}}').decode()}}
    await world.client.patch(SECRET, "c1", body, "default")


UNREACHABLE = refused("RegistryUnreachable", "no connection to images.sim")
MISBEHAVES = refused("RegistryMisbehaves", "images.sim answers HTTP 500")
DENIED = refused("RegistryDenied", "images.sim refuses to be read (HTTP 403)", transient=False)
MISSING = refused("ImageNotFound", "images.sim does not have this image or layer", transient=False)

ROWS = (
    *at("enrolment", "the BMC gets no lease", inject=no_leases(),
        also=_nothing_is_known),
    *at("enrolment", "no_lease no_boot_server no_registry", wait="ProbeReport", says=AGAIN, minutes=13),
    *at("claim", "no_lease", wait="ClaimBoot", says=AGAIN, minutes=13),
    *at("release", "no_lease no_registry", wait="Sanitization", says=AGAIN, minutes=15,
        config=ERASED),
    *at("enrolment", "unreported_lease", wait="BootConfirmation", says="Ready=False BootConfirmation"),
    *at("claim", "unreported_lease", wait="BootConfirmation", says="Ready=False BootConfirmation",
        inject=Fault(_unreport, _report, prepare=_unreport)),
    *at("claim", "the boot server is away", wait="ClaimBoot", says=AGAIN, minutes=13, inject=away("boot_url")),
    *at("boot", "the boot server is away", wait="ClaimBoot", minutes=0.5, inject=away("boot_url")),
    *at("boot", "the boot server answers 500", wait="ClaimBoot", minutes=0.5, inject=away("boot_url", ill=True)),
    *at("report", "the registry is away", wait="ProbeReport", minutes=5, inject=away("registry_url")),
    *at("erasure", "the registry is away", wait="Sanitization", minutes=5, inject=away("registry_url")),
    *at("report", "the registry answers 500", wait="ProbeReport", minutes=5,
        inject=away("registry_url", ill=True)),
    *at("erasure", "the registry answers 500", wait="Sanitization", minutes=5,
        inject=away("registry_url", ill=True)),
    *at("inventory claim", "the OCI registry is away", wait="BootConfiguration", inject=UNREACHABLE,
        says=f"ServerBootConfiguration: ImageValidation=Unknown RegistryUnreachable, {UNREADY}"),
    *at("release", "the OCI registry is away", wait="BootConfiguration", inject=UNREACHABLE, config=ERASED,
        says=f"ServerBootConfiguration: ImageValidation=Unknown RegistryUnreachable, {UNREADY}"),
    *at("inventory claim", "the OCI registry answers 500", wait="BootConfiguration", inject=MISBEHAVES, minutes=5,
        says="ServerBootConfiguration: ImageValidation=Unknown RegistryMisbehaves"),
    *at("inventory claim", "the OCI registry is slow", wait="BootConfiguration", inject=slow(400.0), minutes=10,
        says="ServerBootConfiguration: ImageValidation=Unknown Resolving"),
    *at("inventory claim", "the OCI registry refuses", wait="BootConfiguration", inject=DENIED,
        says=f"{INVALID}, {UNREADY}"),
    *at("inventory claim", "the image is not there", wait="BootConfiguration", inject=MISSING,
        says=f"{INVALID}, {UNREADY}"),
    *at("claim", "the Ignition is invalid", wait="BootConfiguration", inject=secret(_spoil),
        says="ServerBootConfiguration: IgnitionValidation=False ValidationFailed, "
        f"ServerBootConfiguration: Event ValidationFailed, {UNREADY}"),
    *at("claim", "the Secret with the Ignition is missing", wait="BootConfiguration", inject=secret(_delete),
        says="ServerBootConfiguration: IgnitionValidation=False SecretMissing, "
        f"ServerBootConfiguration: Event SecretMissing, {UNREADY}"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_a_service_is_seen_and_left_behind(row: Row) -> None:
    """It shows as the page says, and nothing worse does; mended, everything comes to rest."""
    check(row, await live(row))
