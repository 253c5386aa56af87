"""The image alone: a machine boots it with generated scripts and Ignition, and metalprobe reports.

A small web server replaces boot server and registry; there is no controller.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from images import oci
from metal.api.names import REPORT_TOKEN_FILE
from metal.boot import script
from metal.boot.ignition import add_file
from metal.controllers.server.netboot.ignition import discovery
from metal.probe.bundle import zipapp
from tests.lab import site as places
from tests.lab.bmc import ForeignBMC
from tests.lab.dhcp import Kea, hook_script
from tests.lab.machine import DISK, Libvirt, Machine
from tests.lab.run import IMAGES, Run
from tests.lab.site import BRIDGE, HOST, Site
from tests.lab.switch import Switch
from tests.lab.webserver import WebServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

BASE = f"http://{HOST}:8082"
TOKEN = "a-token-of-this-boot"
REPORT_SECONDS = 240
"""Eight times what a quiet machine needs from power-on to the report."""
SHUTDOWN_SECONDS = 60
"""Ten times what a quiet machine needs to shut down."""


@pytest.fixture(scope="module")
def web(run: Run, site: Site) -> Iterator[WebServer]:
    server = WebServer(site.operator, HOST, 8082, run.note)
    yield server
    server.close()


@pytest.fixture(scope="module")
def machine(run: Run, site: Site) -> Iterator[Machine]:
    made = Machine(run, Libvirt(run, site.operator), BRIDGE)
    yield made
    made.cut_power()


def parts(layout: Path) -> dict[str, bytes]:
    """The layers of an OCI layout by the last word of their media type, and its config as `json`."""
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(oci.blob(layout, index["manifests"][0]["digest"]).read_bytes())
    found = [(part["mediaType"].rpartition(".")[2], part["digest"]) for part in manifest["layers"]]
    found.append(("json", manifest["config"]["digest"]))
    return {name: oci.blob(layout, digest).read_bytes() for name, digest in found}


def put_boot_chain(web: WebServer, machine: Machine) -> None:
    """The files that the boot server would serve: its scripts, the image, and the discovery Ignition with a token."""
    image = parts(IMAGES / "discovery")
    command_line = json.loads(image["json"])["commandLine"]
    arguments = ["ignition.firstboot", "ignition.platform.id=metal", f"ignition.config.url={BASE}/ignition"]
    boot = script.Boot(f"{BASE}/kernel", (f"{BASE}/initramfs",), (*script.tokens(command_line), *arguments))
    config = discovery(zipapp(), BASE, machine.uuid).encode()
    web.files = {
        "/ipxe": script.chainload(BASE).encode(),
        f"/ipxe/{machine.uuid}": boot.render().encode(),
        "/kernel": image["kernel"],
        "/initramfs": image["initramfs"],
        "/ignition": add_file(config, REPORT_TOKEN_FILE, TOKEN.encode()),
    }


def test_a_machine_that_boots_the_discovery_image_reports_its_hardware(
    request: pytest.FixtureRequest,
    run: Run,
    site: Site,
    web: WebServer,
    machine: Machine,
    say: Callable[[str], None],
) -> None:
    """Redfish power-on, DHCP, iPXE, kernel, Ignition, metalprobe: the report has the machine's own parts."""
    put_boot_chain(web, machine)
    switch = Switch(site.operator, BRIDGE)
    request.addfinalizer(switch.close)
    dhcp = Kea(run, site.operator, BRIDGE, boot_url=BASE, hook=hook_script(run, ["true"]))
    uri = machine.libvirt.uri
    bmc = ForeignBMC(run, site.bmc, dhcp, uri, mac=places.BMC_MAC, user="admin", password="secret")

    run.restart_clock()
    system = f"/redfish/v1/Systems/{machine.uuid}"
    bmc.ask("PATCH", system, {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}})
    bmc.ask("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    (path, headers, body), *_ = run.wait_for("the report", lambda: web.received, REPORT_SECONDS)

    report = json.loads(body)
    run.write_json("report.json", report)
    say(f"power-on to report: {run.since_start():.1f} s")
    assert path == "/register"
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert report["systemUUID"] == machine.uuid
    data = report["data"]
    assert data["problems"] == []
    (nic,) = data["networkInterfaces"]
    assert (nic["macAddress"], nic["carrierStatus"]) == (machine.mac, "up")
    assert dhcp.address_of(machine.mac) in nic["ipAddresses"]
    (disk,) = data["storage"]
    assert (disk["sizeBytes"], disk["serial"]) == (DISK.size, DISK.serial)
    assert sum(module["size"] for module in data["memory"]) == machine.memory_size
    assert sum(socket["totalHardwareThreads"] for socket in data["cpu"]) == 1
    assert data["systemInfo"]["systemInformation"]["uuid"] == machine.uuid
    (neighbor,) = data["lldp"][0]["neighbors"]
    assert (neighbor["systemName"], neighbor["chassisId"]) == ("lab-switch", switch.mac)
    assert data["nics"][0]["driver"] == "virtio_net"
    assert "leases4_committed" in run.path("lease-hook.log").read_text()

    run.restart_clock()
    bmc.ask("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": "GracefulShutdown"})
    run.wait_for("a machine without power", lambda: not machine.is_running(), SHUTDOWN_SECONDS)
    say(f"power button to off: {run.since_start():.1f} s")
