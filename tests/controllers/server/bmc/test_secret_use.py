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


async def test_a_server_does_not_get_the_next_secret_of_the_same_name() -> None:
    """It was connected with a BMCSecret that was deleted; the new one may be for another BMC."""
    async with world() as w:
        await w.add_server()
        await w.until("Discovery")
        uid = (await w.client.get(KINDS.bmc_secret, "s1-secret")).metadata.uid
        connected = await w.until_true(lambda s: s.status.connected_secret_uid == uid)
        await asyncio.sleep(120)
        await w.client.delete(KINDS.bmc_secret, "s1-secret")
        await w.until_true(lambda s: condition(s, "BMCReachable") == ("False", "SecretNotFound"))
        data = {"username": "Zm9v", "password": "YmFy"}
        await w.client.create(KINDS.bmc_secret, {"metadata": {"name": "s1-secret"}, "data": data})
        refused = await w.until_true(lambda s: condition(s, "BMCReachable")[1] == "SecretNotAllowed")
        await w.client.patch(KINDS.bmc_secret, "s1-secret", {"allowedBMCs": ["server/s1"]})
        await w.until_true(lambda s: condition(s, "BMCReachable")[0] == "True")
    assert refused.status.connected_secret_uid == connected.status.connected_secret_uid
