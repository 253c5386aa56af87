"""Everything of the chain except the BMC, whose lease is the first event."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.bmc import PORT, ForeignBMC
from tests.lab.dhcp import Dnsmasq, hook_script
from tests.lab.drives import Drive
from tests.lab.machine import DISK, Libvirt, Machine
from tests.lab.neighbor import Neighbor
from tests.lab.operator import Operator
from tests.lab.registry import OCIRegistry, PrivateRegistry
from tests.lab.run import IMAGES, Run
from tests.lab.site import BMC_MAC, BRIDGE, HOST, Site
from tests.lab.switch import Switch
from tests.lab.webserver import WebServer

BOOT, REGISTRY, HOME, OCI = f"{HOST}:8082", f"{HOST}:10000", f"{HOST}:8090", f"{HOST}:5000"
PRIVATE = f"{HOST}:5443"
DEMO = f"{OCI}/os/demo:latest"
NOTHING_ERASED: Mapping[str, Any] = {"sanitization": {"policy": "None"}}
"""For stories about something else: a boot less after each tenant."""
STEP = 300
"""Seconds for one boot of the machine with everything around it, when others keep the processors busy."""
PREFIXES = f"""\
macPrefixes:
- macPrefix: "{BMC_MAC[:14]}"
  manufacturer: Lab
  type: bmc
  protocol: Redfish
  protocolScheme: http
  port: {PORT}
  defaultCredentials:
  - username: admin
    password: lab-secret
"""


@dataclass
class Chain:
    """What the steps share."""

    run: Run
    site: Site
    operator: Operator
    machine: Machine
    switch: Switch
    home: WebServer
    neighbor: Neighbor
    dhcp: Dnsmasq | None = None
    nonces: list[str] = field(default_factory=list)

    def plug_in_bmc(self) -> ForeignBMC:
        """Start DHCP with the lease hook, and the BMC that requests an address."""
        hook = hook_script(self.run, self.operator.lease_hook)
        self.dhcp = Dnsmasq(self.run, self.site.operator, BRIDGE, boot_url=f"http://{BOOT}", hook=hook)
        uri = self.machine.libvirt.uri
        return ForeignBMC(self.run, self.site.bmc, self.dhcp, uri, mac=BMC_MAC, user="admin", password="lab-secret")

    def server(self) -> dict[str, Any]:
        """The one Server."""
        (found,) = self.operator.objects("servers")
        return found

    def wait_for_state(self, wanted: str, *, attacked: bool = False) -> dict[str, Any]:
        """Wait until the Server is in a state; meanwhile the other client keeps requesting."""

        def look() -> dict[str, Any] | None:
            server = self.server()
            if attacked:
                self.neighbor.attack(server["spec"]["systemUUID"])
            return server if server["status"].get("state") == wanted else None

        return self.run.wait_for(f"a Server in state {wanted}", look, STEP)


@contextlib.contextmanager
def begin(
    run: Run,
    site: Site,
    *,
    images: Path = IMAGES,
    drives: Sequence[Drive] = (DISK,),
    settings: Mapping[str, Any] = NOTHING_ERASED,
) -> Iterator[Chain]:
    """Everything except the BMC: no server is known yet. `settings` are the operator's, beside addresses."""
    oci = OCIRegistry(run, site.operator, OCI)
    probe_image = oci.push(images / "discovery", "os/discovery")
    oci.push(images / "demo", "os/demo")
    private = PrivateRegistry(run, site.operator, PRIVATE)
    prefixes = run.path("operator/mac-prefixes.yaml")
    prefixes.write_text(PREFIXES)
    config = {
        "macPrefixesFile": str(prefixes),
        "probeImage": private.private(probe_image),
        "listen": {"boot": BOOT, "registry": REGISTRY},
        "registries": {"insecure": [OCI], **private.options},
        "bmc": {"scheme": "http", "checkInterval": "10s"},
        "timeouts": {"resync": "10s"},
        **settings,
    }
    operator = Operator(run, site.operator, config)
    machine = Machine(run, Libvirt(run, site.operator), BRIDGE, with_drives=drives)
    switch = Switch(site.operator, BRIDGE)
    home = WebServer(site.operator, HOST, 8090, run.note)
    neighbor = Neighbor(site.neighbor, f"http://{BOOT}", f"http://{REGISTRY}")
    yield Chain(run, site, operator, machine, switch, home, neighbor)
    operator.keep_state()
    run.write_json(
        "neighbor.json", [(url, code, body.decode(errors="replace")) for url, code, body in neighbor.answers]
    )
    home.close()
    switch.close()
    machine.cut_power()
