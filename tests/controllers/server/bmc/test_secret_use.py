"""A Server with spec.bmc uses only a BMCSecret that allows it."""

import asyncio

import pytest

from tests.controllers.server.steps import condition
from tests.controllers.world import KINDS, world

pytestmark = pytest.mark.looptime


async def test_a_server_with_the_secret_of_another_one_sends_no_password() -> None:
    """It is bound to the first server; the second waits with the reason, and its BMC is not contacted."""
    async with world() as w:
        await w.add_server()
        await w.client.patch(KINDS.bmc_secret, "s1-secret", {"allowedBMCs": None})
        await w.until("Discovery")
        inline = {"protocol": {"name": "Redfish", "port": 443}, "address": "10.6.6.6",
                  "bmcSecretRef": {"name": "s1-secret"}}  # fmt: skip
        uuid = "99999999-2222-3333-4444-555555555501"
        await w.client.create(KINDS.server, {"metadata": {"name": "s2"}, "spec": {"systemUUID": uuid, "bmc": inline}})
        await asyncio.sleep(60)
        refused = await w.server("s2")
        secret = await w.client.get(KINDS.bmc_secret, "s1-secret")
    assert condition(refused, "BMCReachable") == ("False", "SecretNotAllowed")
    assert secret.metadata.annotations[KINDS.key("bound-to")] == "server/s1"
