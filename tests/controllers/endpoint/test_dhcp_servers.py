"""Endpoints as DHCP servers write them: our hook with both IP families, and FeDHCP."""

import pytest

from metal.machine.leases import lease_given
from tests.controllers.endpoint.test_reconciler import done
from tests.controllers.rack import KINDS, rack, ready

pytestmark = pytest.mark.looptime

MAC = "a0:b1:c2:00:00:01"


@pytest.mark.behaviour(
    "Endpoint", "A BMC with leases of both IP families is enrolled at the first one; the other is Ignored."
)
async def test_a_bmc_with_addresses_of_both_families_is_enrolled_once() -> None:
    """The second Endpoint names the first, and is no error."""
    async with rack() as r:
        r.plug(1)
        first = await lease_given(r.user, KINDS, MAC, "192.0.2.1")
        await done(r, first.metadata.name)
        second = await lease_given(r.user, KINDS, MAC, "2001:db8::1")
        ignored = await done(r, second.metadata.name, state="Ignored")
        assert not await r.exists(KINDS.bmc, second.metadata.name)
    assert ready(ignored) == ("False", "OtherAddressFamily")


@pytest.mark.behaviour("Endpoint", "Endpoints that FeDHCP writes are enrolled, under generated names, too.")
async def test_an_endpoint_of_fedhcp_becomes_a_bmc() -> None:
    """FeDHCP writes spec.macAddress and spec.ip, a generated name, and no labels."""
    async with rack() as r:
        r.plug(1)
        spec = {"macAddress": MAC, "ip": "192.0.2.1"}
        made = await r.user.create(KINDS.endpoint, {"metadata": {"generateName": "compute-"}, "spec": spec})
        await done(r, made.metadata.name)
        bmc = await r.bmc(made.metadata.name)
    assert made.metadata.name.startswith("compute-")
    assert bmc.status.ip == "192.0.2.1"
