"""metalctl with a real manager and a simulated machine."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.live import KINDS, Live
from tests.cli.run.test_up import IGNITION, Up, all_available, running, servers, wait_for

pytestmark = pytest.mark.life


@pytest.mark.timeout(180)  # a dozen programs start here, each of which takes seconds on a machine under load
async def test_a_machine_is_claimed_switched_and_released_without_kubectl(tmp_path: Path) -> None:
    """Each command waits for the machine; `why` explains the steps, and the server is maintained."""
    up = Up(tmp_path, 1)
    file = tmp_path / "web.ign"
    file.write_text(IGNITION)
    needed = KINDS.key("maintenance-needed")
    async with running(up) as client:
        await wait_for(lambda: servers(client), all_available(1))
        (machine,) = await servers(client)
        name = machine.metadata.name
        here = Live(client, up.data / "kubeconfig")
        code, out, err = await here.metalctl("claim", "web", "--image", up.image, "--ignition", str(file), "--wait")
        assert (code, out.splitlines()[1]) == (0, f"serverclaim/web runs on server {name}"), err
        assert "waiting for the machine to fetch" in err
        for power in ("off", "on"):
            code, out, err = await here.subcommand("power", power, name, "--wait")
            assert (code, out.startswith(f"server/{name} is {power.capitalize()} ")) == (0, True), err
        code, out, err = await here.metalctl("why", "claim/web", "-o", "json")
        (part,) = json.loads(out)[0]["parts"]
        assert f"The claim's image {up.image} booted" in part["tried"][-1]
        code, out, err = await here.metalctl("maintain", name, "--reason", "new DIMM")
        await wait_for(lambda: client.list(KINDS.claim), lambda page: needed in page.items[0].metadata.labels)
        code, out, err = await here.metalctl("approve", "web")
        assert (code, out) == (0, "serverclaim/web approved: new DIMM\n"), err
        code, out, err = await here.metalctl("maintain", name, "--wait")
        assert (code, out.splitlines()[1]) == (0, f"server/{name} is in maintenance"), err
        code, out, err = await here.metalctl("maintain", name, "--end", "--wait")
        assert (code, out) == (0, f"servermaintenance/{name} deleted; the server has left maintenance\n"), err
        code, out, err = await here.metalctl("release", "web", "--wait")
        assert (code, out) == (0, f"serverclaim/web deleted; server {name} is Available\n"), err
        await up.end(signal.SIGINT)
