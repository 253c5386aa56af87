"""The image alone: a machine boots it over the network, Ignition writes what it is told, and metalprobe reports."""

import hashlib
import json
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from images import oci
from metal.probe.bundle import zipapp
from tests.lab import site as places
from tests.lab.bmc import ForeignBMC
from tests.lab.conftest import IMAGES
from tests.lab.dhcp import Dnsmasq, hook_script
from tests.lab.machine import Libvirt, Machine
from tests.lab.run import Run
from tests.lab.site import BRIDGE, HOST, Site
from tests.lab.switch import Switch
from tests.lab.webserver import WebServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

BASE = f"http://{HOST}:8082"
TOKEN = "a-token-of-this-boot"
REPORT_SECONDS = 240
"""Ten times what a quiet machine needs from power-on to the report."""
UNIT = f"""\
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=/usr/bin/python3 /opt/metalprobe.pyz --registry-url={BASE} --server-uuid=%s --token=@/etc/token
Restart=on-failure
RestartPreventExitStatus=65 77
StandardError=journal+console
[Install]
WantedBy=multi-user.target
"""


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
    """The layers of an OCI layout by the last word of their media type."""
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(oci.blob(layout, index["manifests"][0]["digest"]).read_bytes())
    return {
        part["mediaType"].rpartition(".")[2]: oci.blob(layout, part["digest"]).read_bytes()
        for part in manifest["layers"]
    }


def ignition(machine: Machine, probe: bytes) -> bytes:
    """A config with a host name, a token, the probe checked by its digest, and a unit that starts it."""

    def inline(path: str, content: str) -> dict[str, Any]:
        return {"path": path, "mode": 0o600, "contents": {"source": "data:," + urllib.parse.quote(content)}}

    digest = hashlib.sha512(probe).hexdigest()
    fetched = {"source": f"{BASE}/metalprobe.pyz", "verification": {"hash": f"sha512-{digest}"}}
    files = [
        inline("/etc/hostname", "node0\n"),
        inline("/etc/token", TOKEN),
        {"path": "/opt/metalprobe.pyz", "contents": fetched},
    ]
    unit = {"name": "metalprobe.service", "enabled": True, "contents": UNIT % machine.uuid}
    return json.dumps(
        {"ignition": {"version": "3.3.0"}, "storage": {"files": files}, "systemd": {"units": [unit]}}
    ).encode()


SCRIPT = f"""\
#!ipxe
kernel {BASE}/kernel initrd=initrd.img console=ttyS0,115200 loglevel=5 ignition.firstboot ignition.platform.id=metal \
ignition.config.url={BASE}/ignition BOOTIF=01-${{net0/mac:hexhyp}}
initrd --name initrd.img {BASE}/initramfs
boot
"""


def test_a_machine_that_boots_the_discovery_image_reports_its_hardware(
    request: pytest.FixtureRequest,
    run: Run,
    site: Site,
    web: WebServer,
    machine: Machine,
    say: Callable[[str], None],
) -> None:
    """Redfish power-on, DHCP, iPXE, kernel, Ignition, metalprobe: the report names the machine's own parts."""
    probe = zipapp()
    web.files = {"/boot.ipxe": SCRIPT.encode(), "/ignition": ignition(machine, probe), "/metalprobe.pyz": probe}
    web.files |= {f"/{name}": data for name, data in parts(IMAGES / "discovery").items()}
    switch = Switch(site.operator, BRIDGE)
    request.addfinalizer(switch.close)
    dhcp = Dnsmasq(run, site.operator, BRIDGE, boot_url=f"{BASE}/boot.ipxe", hook=hook_script(run, ["true"]))
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
    assert (disk["sizeBytes"], disk["serial"]) == (machine.disk_size, "node0-disk0")
    assert sum(module["size"] for module in data["memory"]) == machine.memory_size
    assert sum(socket["totalHardwareThreads"] for socket in data["cpu"]) == 1
    assert data["systemInfo"]["systemInformation"]["uuid"] == machine.uuid
    (neighbor,) = data["lldp"][0]["neighbors"]
    assert (neighbor["systemName"], neighbor["chassisId"]) == ("lab-switch", switch.mac)
    assert data["nics"][0]["driver"] == "virtio_net"
    assert f"add {places.BMC_MAC}" in run.path("lease-hook.log").read_text()
