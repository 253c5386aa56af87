"""The SSH host key of a BMC inside a Server: consoles record it, and the Server reports it."""

from typing import Any

import pytest

from metal.kube.meta.conditions import find
from tests.controllers.server.steps import operate, reasons
from tests.controllers.world import KINDS, World, world

pytestmark = pytest.mark.looptime


async def pin(w: World, **status: Any) -> None:
    """What a console writes."""
    await w.client.patch_status(KINDS.server, "s1", {"status": {"sshHostKey": status}})


async def said(w: World, status: str) -> Any:
    """The server, once its condition has this status."""
    return await w.until_true(lambda s: ("HostKeyTrusted", status) in [(c.type, c.status) for c in s.status.conditions])


@pytest.mark.behaviour(
    "Server: identity and inventory",
    "A refused SSH host key of an inline `spec.bmc` is a condition of the Server until it is accepted.",
)
async def test_a_refused_host_key_is_a_condition_until_it_is_accepted() -> None:
    """What status says was refused is trusted then; each step is an Event."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await pin(w, sha256="SHA256:first")
        await said(w, "True")
        await pin(w, refused="SHA256:second")
        refused = await said(w, "False")
        await operate(w, "accept-host-key")
        accepted = await said(w, "True")
        told = await reasons(w)
    condition: Any = find(refused.status.conditions, "HostKeyTrusted")
    assert condition.reason == "HostKeyChanged"
    assert "kubectl annotate servers s1 metal.ironcore.dev/operation=accept-host-key" in condition.message
    assert (accepted.status.ssh_host_key.sha256, accepted.status.ssh_host_key.refused) == ("SHA256:second", "")
    assert {"HostKeyPinned", "HostKeyChanged", "HostKeyAccepted"} <= set(told)


async def test_nothing_is_accepted_where_nothing_was_refused() -> None:
    """An Event says so, and the pin stays."""
    async with world() as w:
        await w.add_server()
        await w.discover()
        await pin(w, sha256="SHA256:first")
        await operate(w, "accept-host-key")
        server: Any = await w.until_true(lambda s: KINDS.key("operation") not in s.metadata.annotations)
        told = await reasons(w)
    assert server.status.ssh_host_key.sha256 == "SHA256:first"
    assert "NothingToAccept" in told
