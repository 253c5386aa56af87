"""A BMC whose spec has zero values or a malformed address, as other programs write it."""

import asyncio
from typing import Any

import pytest

from metal.api.bmc import BMC
from tests.controllers.rack import Rack, rack, soon

pytestmark = pytest.mark.looptime


@pytest.mark.behaviour(
    "BMC", "A malformed `spec.access.macAddress` is reported and not used; the BMC works without it."
)
async def test_a_malformed_mac_address_does_not_stop_a_bmc() -> None:
    """The status can still be written: it has no address that its schema would refuse."""
    async with rack() as r:
        r.plug(1)
        await r.add_bmc(1, access={"ip": "192.0.2.1", "macAddress": "a0:b1:c2"})
        bmc = await soon(lambda: _ready(r))
    assert (bmc.status.mac_address, bmc.status.ip) == ("", "192.0.2.1")
    found = next(c for c in bmc.status.conditions if c.type == "MACAddressValid")
    assert (found.status, found.reason, "'a0:b1:c2'" in found.message) == ("False", "Malformed", True)


async def _ready(r: Rack) -> BMC | None:
    bmc = await r.bmc()
    return bmc if any((c.type, c.status) == ("Ready", "True") for c in bmc.status.conditions) else None


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [({"name": "", "port": 443}, "ProtocolNotSupported"), ({"name": "Redfish", "port": 0}, "PortNotSet")],
)
async def test_a_protocol_that_is_not_set_is_reported(protocol: dict[str, Any], reason: str) -> None:
    """Programs in Go send zero values; the BMC is not contacted, and the message names the field."""
    async with rack() as r:
        bmc = r.plug(1)
        await r.add_bmc(1, protocol=protocol)
        await asyncio.sleep(5)
        ready = next(c for c in (await r.bmc()).status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason, "protocol." in ready.message) == ("False", reason, True)
    assert bmc.logins == []
