"""DHCP, boot server, registry and OCI registry that fail: rows of docs/failures.md."""

import base64
from dataclasses import replace

import pytest

from metal.api.core import SECRET
from metal.boot.errors import ImageError
from metal.config.options import BootOptions
from metal.machine.leases import lease_ended
from metal.sim.bmc.redfish_service import SimBMC
from tests.sim.failing import ERASED, FIRST_REQUEST, Act, FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import IGNITION, KINDS
from tests.sim.rows import AGAIN, FAILED, OPEN, SILENT, STARTED, End, Fault, Row, at, attempts

pytestmark = [pytest.mark.looptime, pytest.mark.life]
NO_BUTANE = BootOptions(butane="")
UNREADY = "Ready=False BootConfigurationNotReady, Error BootConfigurationNotReady"
INVALID = (
    "ServerBootConfiguration: ImageValidation=False ValidationFailed, ServerBootConfiguration: Event ValidationFailed"
)


def away(service: str, what: str, *, ill: bool = False) -> Fault:
    """Connections to the service are refused; or it answers 500."""

    async def begin(world: FailingPlane) -> None:
        where = world.lines.ill if ill else world.lines.away
        where.add(getattr(world.config, service))

    async def remove(world: FailingPlane) -> None:
        world.lines.ill.clear()
        world.lines.away.clear()

    return Fault(begin, remove, what=what)


def refused(reason: str, message: str, what: str, *, remedy: str = "") -> Fault:
    """The OCI registry fails as its client reports it; for good where a remedy is needed."""

    async def begin(world: FailingPlane) -> None:
        world.registry.failure = ImageError(reason, message, transient=not remedy)

    async def remove(world: FailingPlane) -> None:
        world.registry.failure = None

    return Fault(begin, remove, what=what, remedy=remedy)


def slow(seconds: float) -> Fault:
    """The OCI registry answers after so many seconds."""

    async def begin(world: FailingPlane) -> None:
        world.registry.delay = seconds

    async def remove(world: FailingPlane) -> None:
        world.registry.delay = 0.0

    return Fault(begin, remove, what=f"The OCI registry takes {seconds:g} s to answer.")


def no_leases() -> Fault:
    """No lease is announced."""
    hidden: dict[str, SimBMC] = {}

    async def begin(world: FailingPlane) -> None:
        hidden.update(world.fleet.bmcs)
        world.fleet.bmcs.clear()

    async def remove(world: FailingPlane) -> None:
        world.fleet.bmcs.update(hidden)
        await world.announce()

    return Fault(begin, remove, what="The BMC gets no lease.")


async def _nothing_is_known(world: FailingPlane) -> None:
    """There is no Endpoint."""
    assert not (await world.client.list(KINDS.endpoint)).items


async def _unreport(world: FailingPlane) -> None:
    world.machine.faults.unreported_lease = True


async def _end_lease(world: FailingPlane) -> None:
    identity = world.machine.identity
    await lease_ended(world.client, KINDS, identity.host_macs[0], identity.host_ip)
    await _unreport(world)


async def _report(world: FailingPlane) -> None:
    world.machine.faults.unreported_lease = False


def secret(changed: Act, what: str, remedy: str) -> Fault:
    """The Secret with the Ignition is changed as soon as it exists; removed, it is as it was."""

    async def begin(world: FailingPlane) -> None:
        world.claimed = changed

    async def remove(world: FailingPlane) -> None:
        data = {"ignition": IGNITION, "format": "ignition"}
        body = {"metadata": {"name": "c1", "namespace": "default"}, "stringData": data}
        await world.client.apply(SECRET, body, manager="test")

    return Fault(begin, remove, what=what, remedy=remedy)


async def _delete(world: FailingPlane) -> None:
    await world.client.delete(SECRET, "c1", "default")


async def _spoil(world: FailingPlane) -> None:
    body = {"data": {"ignition": base64.b64encode(b'{"ignition": {}}').decode()}}
    await world.client.patch(SECRET, "c1", body, "default")


async def _butane(world: FailingPlane) -> None:
    body = {"data": {"format": base64.b64encode(b"fcos").decode()}}
    await world.client.patch(SECRET, "c1", body, "default")


UNREACHABLE = refused("RegistryUnreachable", "no connection to images.sim", "The OCI registry is unreachable.")
MISBEHAVES = refused("RegistryMisbehaves", "images.sim answers HTTP 500", "The OCI registry answers 500.")
DENIED = refused(
    "RegistryDenied", "images.sim refuses to be read (HTTP 403)", "The OCI registry refuses the image.",
    remedy="Make the image readable.",
)  # fmt: skip
MISSING = refused(
    "ImageNotFound", "images.sim does not have this image or layer", "The image does not exist.",
    remedy="Push the image.",
)  # fmt: skip
UNREPORTED = Fault(
    _unreport, _report, prepare=_unreport, what="DHCP gives the machine an address and does not report the lease."
)
ENDED = Fault(_end_lease, _report, what="DHCP gives the machine an address and does not report the lease.")
PERMITTED = replace(UNREPORTED, what="DHCP does not report the machine's lease, and the site permits FirstRequest.")
SPOILT = secret(_spoil, "The Ignition is invalid.", "Correct the Secret.")
BUTANE = secret(_butane, "The Ignition is Butane, and butane is not installed.", "Convert it, or install butane.")
DELETED = secret(_delete, "The Secret with the Ignition does not exist.", "Create the Secret.")
BOOT_AWAY = away("boot_url", "Connections to the boot server are refused.")
BOOT_ILL = away("boot_url", "The boot server answers 500.", ill=True)
REGISTRY_AWAY = away("registry_url", "Connections to the registry are refused.")
REGISTRY_ILL = away("registry_url", "The registry answers 500.", ill=True)
UNPROVED = "no DHCP lease shows which machine received the script"
UNLEASED = "nothing is served before a DHCP lease is reported"
DONE = End.COMPLETES

ROWS = (
    *at("enrolment", "BMC without a lease", inject=no_leases(), also=_nothing_is_known),
    *attempts("no_lease", "enrolment ProbeReport, claim ClaimBoot, release Sanitization", message=OPEN),
    *attempts("no_boot_server", "enrolment ProbeReport", message=OPEN),
    *attempts("no_registry", "enrolment ProbeReport", "Event BootWindowClosed", message=STARTED),
    *attempts("no_registry", "release Sanitization", "Event BootWindowClosed", message=SILENT),
    *at("enrolment", "unreported_lease", wait="ProbeReport", reports=f"{AGAIN}, Event TrustTooLow", minutes=13,
        message=UNLEASED),
    *at("enrolment", "unreported_lease", wait="ProbeReport", reports=f"{FAILED}, Event TrustTooLow", minutes=45,
        message=UNLEASED, end=End.RETRY_SERVER),
    *at("claim", "unreported_lease", wait="ClaimBoot", reports=f"{AGAIN}, Event TrustTooLow", inject=ENDED,
        minutes=13, message=UNLEASED),
    *at("enrolment", "unreported_lease with FirstRequest", wait="ProbeReport", inject=PERMITTED, config=FIRST_REQUEST,
        reports="Event BootNotConfirmed", may_report="MachineOff", end=DONE, message=UNPROVED),
    *at("claim", "unreported_lease with FirstRequest", wait="ClaimBoot", inject=PERMITTED, config=FIRST_REQUEST,
        reports="Event BootNotConfirmed", may_report="MachineOff", end=DONE, message=UNPROVED),
    *at("claim", "boot server away", wait="ClaimBoot", reports=AGAIN, minutes=13, inject=BOOT_AWAY, message=OPEN),
    *at("boot", "boot server away", wait="ClaimBoot", minutes=0.5, inject=BOOT_AWAY),
    *at("boot", "boot server answers 500", wait="ClaimBoot", minutes=0.5, inject=BOOT_ILL),
    *at("report", "registry away", wait="ProbeReport", minutes=5, inject=REGISTRY_AWAY),
    *at("erasure", "registry away", wait="Sanitization", minutes=5, inject=REGISTRY_AWAY),
    *at("report", "registry answers 500", wait="ProbeReport", minutes=5, inject=REGISTRY_ILL),
    *at("erasure", "registry answers 500", wait="Sanitization", minutes=5, inject=REGISTRY_ILL),
    *at("inventory claim", "OCI registry away", wait="BootConfiguration", inject=UNREACHABLE,
        reports=f"ServerBootConfiguration: ImageValidation=Unknown RegistryUnreachable, {UNREADY}",
        message="no connection to images.sim"),
    *at("release", "OCI registry away", wait="BootConfiguration", inject=UNREACHABLE, config=ERASED,
        reports=f"ServerBootConfiguration: ImageValidation=Unknown RegistryUnreachable, {UNREADY}",
        message="no connection to images.sim"),
    *at("inventory claim", "OCI registry answers 500", wait="BootConfiguration", inject=MISBEHAVES, minutes=5,
        reports="ServerBootConfiguration: ImageValidation=Unknown RegistryMisbehaves",
        message="images.sim answers HTTP 500"),
    *at("inventory claim", "OCI registry slow", wait="BootConfiguration", inject=slow(400.0), minutes=10, end=DONE,
        reports="ServerBootConfiguration: ImageValidation=Unknown Resolving"),
    *at("inventory claim", "OCI registry refuses", wait="BootConfiguration", inject=DENIED,
        reports=f"{INVALID}, {UNREADY}", message="RegistryDenied: images.sim refuses to be read (HTTP 403)"),
    *at("inventory claim", "missing image", wait="BootConfiguration", inject=MISSING,
        reports=f"{INVALID}, {UNREADY}", message="ImageNotFound: images.sim does not have this image or layer"),
    *at("claim", "invalid Ignition", wait="BootConfiguration", inject=SPOILT,
        reports="ServerBootConfiguration: IgnitionValidation=False ValidationFailed, "
        f"ServerBootConfiguration: Event ValidationFailed, {UNREADY}", message="Secret c1: $.ignition.version"),
    *at("claim", "Butane without butane", wait="BootConfiguration", inject=BUTANE, config={"boot": NO_BUTANE},
        reports="ServerBootConfiguration: IgnitionValidation=False ButaneUnavailable, "
        f"ServerBootConfiguration: Event ButaneUnavailable, {UNREADY}",
        message="Secret c1: the Butane document: is not converted, because the program butane is not installed here"),
    *at("claim", "missing Secret with the Ignition", wait="BootConfiguration", inject=DELETED,
        reports="ServerBootConfiguration: IgnitionValidation=False SecretMissing, "
        f"ServerBootConfiguration: Event SecretMissing, {UNREADY}",
        message="the Secret c1 does not exist in namespace default"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_fault_of_a_service_is_reported_and_ends(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
