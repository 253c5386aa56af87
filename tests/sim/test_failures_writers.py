"""Other clients that write what the operator depends on: rows of docs/failures.md."""

from typing import Any

import msgspec
import pytest

from metal.api.names import TENANCY
from metal.api.tenancy import Tenancy
from metal.kube.client.errors import Invalid
from metal.machine import kept_tenancy
from tests.sim.failing import ERASED, FailingPlane
from tests.sim.failures import check, live
from tests.sim.plane import KINDS
from tests.sim.rows import Fault, Row, at
from tests.sim.test_failures_bmc import CERTIFICATE

pytestmark = [pytest.mark.looptime, pytest.mark.life]
KNOWN_TO_GO = ("state", "powerState", "storages", "networkInterfaces", "manufacturer", "model", "conditions")
"""Fields of the status that the types of the Go operator, v0.7.0, have."""


def _resets(world: FailingPlane) -> int:
    return sum(getattr(entry, "what", "") == "reset" for entry in world.fleet.history)


async def _untouched(world: FailingPlane) -> None:
    """No reset was sent to the machine, and the tenant's system runs on it."""
    assert _resets(world) == world.before
    assert world.machine in world.tenants()


async def _wipe(world: FailingPlane) -> None:
    """As a typed Update of a Go client."""
    world.before = _resets(world)
    server = await world.server_of(world.machine)
    assert server is not None
    plain: dict[str, Any] = msgspec.to_builtins(server.status)
    body = {"status": {name: None for name in plain if name not in KNOWN_TO_GO}}
    await world.client.patch_status(KINDS.server, server.metadata.name, body)


async def _restore_status(world: FailingPlane) -> None:
    """Status and annotation are those from before the claim."""
    world.before = _resets(world)
    server = await world.server_of(world.machine)
    assert server is not None
    name, clean = server.metadata.name, {"data": "Clean", "claimRef": None, "boot": None, "policy": ""}
    kept = kept_tenancy.of(Tenancy(data="Clean"))
    await world.client.patch(KINDS.server, name, {"metadata": {"annotations": {KINDS.key(TENANCY): kept}}})
    body = {"status": {"tenancy": clean, "bootWindow": None}}
    await world.client.patch_status(KINDS.server, name, body)


async def _drop_pin(world: FailingPlane) -> None:
    """And the address leads to another device."""
    await CERTIFICATE.begin(world)
    (bmc,) = (await world.client.list(KINDS.bmc)).items
    await world.client.patch_status(KINDS.bmc, bmc.metadata.name, {"status": {"certificate": None}})
    with pytest.raises(Invalid, match="tls"):
        await world.client.patch(KINDS.bmc, bmc.metadata.name, {"spec": {"tls": None}})


UNPINNED = Fault(
    _drop_pin, CERTIFICATE.remove, remedy=CERTIFICATE.remedy,
    what="Another client drops `status.certificate`, and the BMC shows another one; dropping `spec.tls` is refused.",
)  # fmt: skip
WIPED = Fault(_wipe, what="Another client drops the fields of the Server's status that it does not know.")
OUTDATED = Fault(
    _restore_status, what="A backup brings back the record of tenancy and its annotation from before the claim."
)
ROWS = (
    Row("the status is wiped", "tenant", inject=WIPED, also=_untouched, reports="Event StatusLost"),
    *at("claim erasure", "the status is wiped", inject=WIPED, reports="Event StatusLost", config=ERASED),
    Row("the status is older than the claim", "tenant", inject=OUTDATED, also=_untouched,
        reports="Event StatusOutdated", may_report="Reserved"),
    Row("the pin is dropped", "tenant", "BMC", "BMC: Event PinRestored, BMC: Ready=False CertificateChanged, "
        "BMC: Event CertificateChanged, BMCReachable=False CertificateChanged, Event CertificateChanged, "
        "Error BMCCertificateChanged", inject=UNPINNED, options={"scheme": "https"}, message="is not the pinned one"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_what_another_client_drops_is_reported_and_restored(row: Row) -> None:
    """Each row reports what it names and nothing worse, and ends as it says."""
    check(row, await live(row))
