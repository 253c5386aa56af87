"""Objects that a backup brings back as they were before: rows of docs/failures.md."""

import asyncio
import base64
from typing import Any

import msgspec
import pytest

from metal.api.core import CONFIG_MAP, LEASE
from metal.api.names import APPROVAL, PINNED_CERTIFICATE, REPORT_KEY
from metal.controllers.shared.access.enrolment_policy import APPROVED, PENDING
from metal.kube.client.errors import AlreadyExists
from metal.kube.meta.objects import Kind
from metal.sim.bmc.redfish_service import SimBMC
from metal.sim.machine.identity import Board
from tests.sim.failing import ERASED, FailingPlane, claim
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import Fault, Row, at
from tests.sim.test_failures_bmc import CERTIFICATE, away, pin_first
from tests.sim.test_failures_writers import _resets, _untouched

pytestmark = [pytest.mark.looptime, pytest.mark.life]
FORMER, LONG_AGO = "former-system-0", "2025-12-01T00:00:00.000000Z"
HTTPS = {"scheme": "https"}


async def _only(world: FailingPlane, kind: Kind[Any]) -> Any:
    world.before = _resets(world)
    (found,) = (await world.client.list(kind)).items
    return found


async def _recreate(world: FailingPlane, kind: Kind[Any], obj: Any, **spec: Any) -> None:
    """Delete an object and create it without its status; `spec` replaces fields. Another client may be faster."""
    whole, meta = msgspec.to_builtins(obj), obj.metadata
    kept = {key: whole["metadata"].get(key) for key in ("name", "namespace", "labels", "annotations")}
    body = {key: value for key, value in whole.items() if key not in ("metadata", "status", "apiVersion", "kind")}
    body = {
        **body,
        **({"spec": spec} if spec else {}),
        "metadata": {key: value for key, value in kept.items() if value},
    }
    await world.client.delete(kind, meta.name, meta.namespace)
    while True:
        try:
            await world.client.create(kind, body)
        except AlreadyExists:
            if (await world.client.get(kind, meta.name, meta.namespace)).metadata.uid == meta.uid:
                await asyncio.sleep(0.5)
                continue
        return


async def _annotate_bmc(world: FailingPlane, **values: str | None) -> str:
    name: str = (await _only(world, KINDS.bmc)).metadata.name
    notes = {KINDS.key(key): value for key, value in values.items()}
    await world.client.patch(KINDS.bmc, name, {"metadata": {"annotations": notes}})
    return name


async def _unapprove(world: FailingPlane) -> None:
    await _annotate_bmc(world, **{APPROVAL: PENDING})
    world.machine_requests = _requests(world)


async def _approve(world: FailingPlane) -> None:
    await _annotate_bmc(world, **{APPROVAL: APPROVED})


def _requests(world: FailingPlane) -> int:
    return world.fleet.bmcs[world.machine.identity.bmc_ip].requests.total()


async def _unpin(world: FailingPlane) -> None:
    await CERTIFICATE.begin(world)
    name = await _annotate_bmc(world, **{PINNED_CERTIFICATE: None})
    await world.client.patch_status(KINDS.bmc, name, {"status": {"certificate": None}})
    world.machine_requests = _requests(world)


async def _recreate_bmc(world: FailingPlane) -> None:
    await _recreate(world, KINDS.bmc, await _only(world, KINDS.bmc))


async def _recreate_secret(world: FailingPlane) -> None:
    await _recreate(world, KINDS.bmc_secret, await _only(world, KINDS.bmc_secret))


async def _set_password(world: FailingPlane, password: str) -> str:
    """Returns the former one."""
    secret = await _only(world, KINDS.bmc_secret)
    data = {"password": base64.b64encode(password.encode()).decode()}
    await world.client.patch(KINDS.bmc_secret, secret.metadata.name, {"data": data})
    return str(secret.data["password"].decode())


async def _restore_password(world: FailingPlane) -> None:
    world.password = await _set_password(world, "an-older-one")


async def _correct_password(world: FailingPlane) -> None:
    await _set_password(world, world.password)


async def _restore_lease(world: FailingPlane) -> None:
    lease = await _only(world, LEASE)
    await _recreate(world, LEASE, lease, holderIdentity=FORMER, acquireTime=LONG_AGO)


async def _restore_report(world: FailingPlane) -> None:
    world.before = _resets(world)
    for one in (await world.client.list(CONFIG_MAP)).items:
        if one.metadata.name.startswith("inventory-"):
            body = {"metadata": {"annotations": dict.fromkeys(one.metadata.annotations)}, "data": {REPORT_KEY: "{}"}}
            await world.client.patch(CONFIG_MAP, one.metadata.name, body, one.metadata.namespace)


async def _restore_endpoint(world: FailingPlane) -> None:
    """At its address there is another device, which records what it gets."""
    await pin_first(world)
    bmc = await _only(world, KINDS.bmc)
    world.added = SimBMC(
        world.machine, Board("5a5a0000-0000-4000-8000-000000000001", "02:00:00:00:00:01", "127.16.200.1")
    )
    world.fleet.bmcs[world.added.board.ip] = world.added
    await world.client.patch(KINDS.endpoint, bmc.spec.endpoint_ref.name, {"spec": {"ip": world.added.board.ip}})


async def _restore_config(world: FailingPlane) -> None:
    """It has another image."""
    world.before = _resets(world)
    config = await world.client.get(KINDS.boot_config, "c1", "default")
    await _recreate(world, KINDS.boot_config, config)
    await world.client.patch(KINDS.boot_config, "c1", {"spec": {"image": "images.sim/probe:latest"}}, "default")


async def _restore_claim_status(world: FailingPlane) -> None:
    none = dict.fromkeys(msgspec.to_builtins((await _only(world, KINDS.claim)).status))
    await world.client.patch_status(KINDS.claim, "c1", {"status": none}, "default")


async def _restore_claim(world: FailingPlane) -> None:
    """While no manager runs."""
    await world.manager.stop(grace=0.0)
    await _recreate(world, KINDS.claim, await _only(world, KINDS.claim))
    await world.restart_manager()


async def _claim_anew(world: FailingPlane) -> None:
    await world.client.delete(KINDS.claim, "c1", "default")
    await world.until_available(1, within=3600)
    await claim(world)


async def _gets_no_password(world: FailingPlane) -> None:
    """No request is sent to the other device, and the tenant's system runs."""
    assert world.added.requests.total() == 0
    await _untouched(world)


async def _is_left_alone(world: FailingPlane) -> None:
    """The BMC receives no request, and the tenant's machine keeps running."""
    assert _requests(world) == world.machine_requests
    await _untouched(world)


UNAPPROVED = Fault(
    _unapprove,
    _approve,
    what="A backup brings back a BMC from before its approval.",
    remedy="`metalctl approve bmc/NAME`.",
)
UNPINNED = Fault(
    _unpin, CERTIFICATE.remove, remedy=CERTIFICATE.remedy,
    what="A backup brings back a BMC, with its status, from before its pin, and another certificate is shown.",
)  # fmt: skip
BMC = Fault(_recreate_bmc, what="A backup tool deletes a BMC, and with it its Server, and creates it again.")
SECRET = Fault(_recreate_secret, what="A backup tool deletes a BMCSecret and creates it again.")
PASSWORD = Fault(
    _restore_password, _correct_password, what="A backup brings back a BMCSecret with an older password.",
    remedy="Correct the password.",
)  # fmt: skip
SYSTEM_LEASE = Fault(_restore_lease, what="A backup brings back the Lease of a machine that names a former Server.")
REPORT = Fault(_restore_report, what="A backup brings back an older report of the probe.")
ENDPOINT = Fault(
    _restore_endpoint,
    what="A backup brings back an Endpoint with an older address, where another device is, until the next lease.",
)
CONFIG = Fault(_restore_config, what="A backup brings back a boot configuration with another image and without owner.")
STATUS = Fault(_restore_claim_status, what="A backup brings back a claim without its status.")
CLAIM = Fault(
    _restore_claim, _claim_anew, what="A claim is deleted and created again from a backup while no manager runs.",
    remedy="Delete the claim, which has the server erased, and create it again; or give it the server and its data, "
    "as the wait says.",
)  # fmt: skip

ROWS = (
    Row("BMC from before its approval", "tenant", inject=UNAPPROVED, also=_is_left_alone,
        **away("PendingApproval", "metalctl approve bmc/")),
    Row("BMC from before its pin", "tenant", "BMC", "BMC: Event PinRestored, BMC: Ready=False CertificateChanged, "
        "BMC: Event CertificateChanged, BMCReachable=False CertificateChanged, Event CertificateChanged, "
        "Error BMCCertificateChanged", inject=UNPINNED, options=HTTPS, also=_is_left_alone,
        message="is not the pinned one"),
    Row("BMC deleted and restored", "tenant", "", "ServerClaim: Bound=False ServerLost, Event StatusOutdated, "
        "BootAssumed=True StatusLost", may_report="Reserved", inject=BMC, also=_untouched),
    Row("BMCSecret deleted and restored", "tenant", inject=SECRET, also=_untouched),
    Row("BMCSecret with an older password", "tenant", inject=PASSWORD, also=_untouched,
        **away("AuthenticationFailed", "refused the user name or password")),
    *at("discovery claim release", "Lease of a former Server", inject=SYSTEM_LEASE),
    Row("Lease of a former Server", "tenant", inject=SYSTEM_LEASE, also=_untouched),
    *at("report erasure", "older report of the probe", inject=REPORT, config=ERASED),
    Row("older report of the probe", "tenant", inject=REPORT, also=_untouched),
    Row("Endpoint with an older address", "tenant", "", "BMC: Ready=False CertificateChanged, "
        "BMC: Event CertificateChanged", inject=ENDPOINT, options=HTTPS, also=_gets_no_password,
        message="is not the pinned one"),
    Row("boot configuration with another image", "tenant", inject=CONFIG, also=_untouched),
    Row("claim without its status", "tenant", inject=STATUS, also=_untouched),
    Row("claim deleted and restored", "tenant", "FormerTenant", "Ready=False FormerTenant", inject=CLAIM,
        also=_untouched, message="Delete that claim to have the server erased"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_an_object_of_an_older_backup_takes_no_machine_from_its_tenant(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says; nothing is sent to another device."""
    check(row, await live(row))
