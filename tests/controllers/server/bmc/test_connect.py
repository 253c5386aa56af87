"""What a Server with `spec.bmc` reads before its BMC is contacted."""

import asyncio

import pytest

from metal.api.core import SECRET
from metal.api.server import Server
from metal.kube.meta.conditions import find
from tests.controllers.world import KINDS, NS, world

pytestmark = pytest.mark.looptime


@pytest.mark.behaviour(
    "Server: identity and inventory", "`spec.bmc.tls.caSecretRef` names a Secret in the manager's namespace."
)
async def test_the_authority_of_an_inline_bmc_is_read() -> None:
    """No BMC object names this Secret; without it the condition says what to create, and nothing is sent."""
    async with world() as w:
        await w.add_server()
        await w.client.patch(KINDS.server, "s1", {"spec": {"bmc": {"tls": {"caSecretRef": {"name": "site-ca"}}}}})
        await w.until_true(lambda s: _reason(s) == "CANotFound")
        calls = len(w.bmc.calls)
        await asyncio.sleep(120)
        silent = len(w.bmc.calls) == calls
        data = {"ca.crt": "UEVN"}
        await w.client.create(SECRET, {"metadata": {"name": "site-ca", "namespace": NS}, "data": data})
        await w.until_true(lambda s: _reason(s) == "Connected")
    assert silent


def _reason(server: Server) -> str:
    found = find(server.status.conditions, "BMCReachable")
    return found.reason if found is not None else ""
