"""The whole life cycle: a BMC requests a lease, and at the end a tenant's system has run and the machine is free again.

The tests are consecutive steps; after a failed step the others fail at once.
"""

import json
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import tenant
from tests.lab.machine import DISK
from tests.lab.run import Run
from tests.lab.site import BMC_MAC
from tests.lab.story import DEMO, HOME, STEP, Chain

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def test_a_lease_makes_endpoint_bmc_and_server(chain: Chain, run: Run, say: Callable[[str], None]) -> None:
    """Nothing is created manually: the lease hook and the MAC prefix file are sufficient."""
    run.restart_clock()
    bmc = chain.plug_in_bmc()

    (server,) = run.wait_for("a Server", lambda: chain.operator.objects("servers"), 60)

    say(f"BMC's lease to Server: {run.since_start():.1f} s")
    assert server["spec"]["systemUUID"] == chain.machine.uuid
    (endpoint,) = chain.operator.objects("endpoints.metal.ironcore.dev")
    assert (endpoint["spec"]["macAddress"], endpoint["spec"]["ip"]) == (BMC_MAC, bmc.address)
    assert len(chain.operator.objects("bmcs")) == 1


def test_a_neighbor_who_is_first_gets_nothing(chain: Chain, run: Run) -> None:
    """No lease of the machine is known yet, so nobody gets the script, and an Event reports the request."""
    neighbor, uuid = chain.neighbor, chain.machine.uuid

    def noticed() -> bool:
        assert neighbor.steal_script(uuid) is None
        events = chain.operator.kubectl("get", "events", "-A")
        return "TrustTooLow" in events or "ClientNotLeased" in events

    run.wait_for("an Event about the neighbor", noticed, STEP)
    run.wait_for("a lease of the machine", lambda: chain.dhcp and chain.dhcp.address_of(chain.machine.mac), STEP)
    neighbor.answers.clear()


def test_discovery_tells_the_machines_own_parts(chain: Chain, run: Run, say: Callable[[str], None]) -> None:
    """The Server is Available and off; its status shows the NIC, the switch, the disk, the memory and the processor."""
    run.restart_clock()
    server = chain.wait_for_state("Available", attacked=True)

    say(f"Server to Available: {run.since_start():.1f} s")
    (nic,) = server["status"]["networkInterfaces"]
    assert nic["macAddress"] == chain.machine.mac
    assert nic["neighbors"][0]["macAddress"] == chain.switch.mac
    assert not chain.machine.is_running()
    run.write_json("server.json", server)
    assert server["status"]["totalSystemMemory"] == "1Gi"
    assert sum(processor["totalCores"] for processor in server["status"]["processors"]) == 1
    assert [disk["serial"] for disk in inventory(chain, server)["storage"]] == [DISK.serial]
    drives = [drive for storage in server["status"]["storages"] for drive in storage["drives"]]
    assert [drive["serialNumber"] for drive in drives] == [DISK.serial]


def inventory(chain: Chain, server: dict[str, Any]) -> dict[str, Any]:
    """The probe's whole report; this BMC shows no disks, so those of the status are from the report."""
    name = f"inventory-{server['metadata']['name']}"
    kept = json.loads(chain.operator.kubectl("get", "configmap", name, "-n", "metal-system", "-o", "json"))
    report: dict[str, Any] = json.loads(kept["data"]["report.json"])
    return report


def claim(chain: Chain, name: str) -> str:
    """A claim whose system writes a file and a host name, and calls back with a nonce that only it has."""
    nonce = secrets.token_hex(16)
    program = (
        "import socket, urllib.request\n"
        "body = open('/etc/nonce').read() + ' ' + socket.gethostname()\n"
        f"urllib.request.urlopen('http://{HOME}/home', body.encode(), timeout=30)\n"
    )
    tenant.claim(chain.operator, name, DEMO, program, {"/etc/nonce": nonce})
    chain.nonces.append(nonce)
    return nonce


def wait_for_call(chain: Chain, expected: str) -> None:
    """Wait until a system has called back with these words; meanwhile the other client keeps requesting."""

    def look() -> bool:
        chain.neighbor.attack(chain.machine.uuid)
        return expected.encode() in [body for _, _, body in chain.home.received]

    chain.run.wait_for("a call home", look, STEP)


def test_a_claim_boots_the_tenants_system(chain: Chain, run: Run, say: Callable[[str], None]) -> None:
    """It applies the tenant's Ignition and calls back; kubectl wait on the claim returns."""
    run.restart_clock()
    nonce = claim(chain, "first")

    wait_for_call(chain, f"{nonce} first")

    say(f"claim to the tenant's call: {run.since_start():.1f} s")
    chain.operator.kubectl("wait", "serverclaim/first", "--for=condition=Ready", "--timeout=60s")
    assert chain.machine.is_running()


def test_a_released_machine_is_off_and_serves_the_next_claim(
    chain: Chain, run: Run, say: Callable[[str], None]
) -> None:
    """Deleting the claim frees the Server; a second claim gets it, with its own Ignition only."""
    run.restart_clock()
    chain.operator.kubectl("delete", "serverclaim/first", "--wait=false")
    chain.wait_for_state("Available", attacked=True)
    say(f"release to Available: {run.since_start():.1f} s")
    assert not chain.machine.is_running()

    nonce = claim(chain, "second")
    wait_for_call(chain, f"{nonce} second")
    say(f"release to the next tenant's call: {run.since_start():.1f} s")


def test_the_neighbor_got_nothing(chain: Chain) -> None:
    """Before, during and after every boot: each request was refused, and no response held a token or a nonce."""
    assert len(chain.neighbor.answers) > 50
    assert chain.neighbor.won() == []
    for _, _, body in chain.neighbor.answers:
        assert not any(nonce.encode() in body for nonce in chain.nonces)
        assert b"kernel" not in body
    chain.neighbor.attack(chain.machine.uuid)
    assert chain.neighbor.won() == []
