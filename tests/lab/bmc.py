"""The BMC: sushy-tools over libvirt, in a namespace with an address by DHCP."""

import json
import sys
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import bcrypt

from tests.lab.dhcp import DHCPServer
from tests.lab.netns import Namespace
from tests.lab.run import Run

PORT = 8000
LEASE_SCRIPT = """\
#!/bin/sh
# Called by udhcpc: takes the address over.
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip address replace "$ip/${mask:-24}" dev "$interface"
"""


class ForeignBMC:
    """sushy-emulator with HTTP basic authentication on port 8000 of a leased address."""

    def __init__(
        self, run: Run, where: Namespace, dhcp: DHCPServer, libvirt_uri: str, *, mac: str, user: str, password: str
    ) -> None:
        self._where, self._user, self._password = where, user, password
        self._emulator(run, libvirt_uri)
        script = run.path("bmc/lease-script")
        script.write_text(LEASE_SCRIPT)
        script.chmod(0o755)
        run.start("bmc-dhcp", ["busybox", "udhcpc", "-f", "-i", "eth0", "-s", str(script)], where)
        self.address = run.wait_for("the BMC's lease", lambda: dhcp.address_of(mac), 30)
        run.wait_for("an answer of the BMC", self._answers, 30)

    def _emulator(self, run: Run, libvirt_uri: str) -> None:
        hashed = bcrypt.hashpw(self._password.encode(), bcrypt.gensalt(4)).decode()
        run.path("bmc/htpasswd").write_text(f"{self._user}:{hashed}\n")
        config = run.path("bmc/emulator.conf")
        settings = {
            "SUSHY_EMULATOR_LISTEN_IP": "0.0.0.0",  # noqa: S104 - of its own namespace; the address comes later
            "SUSHY_EMULATOR_LISTEN_PORT": PORT,
            "SUSHY_EMULATOR_LIBVIRT_URI": libvirt_uri,
            "SUSHY_EMULATOR_AUTH_FILE": str(run.path("bmc/htpasswd")),
            "SUSHY_EMULATOR_STATE_DIR": str(run.path("bmc/state/x").parent),
        }
        config.write_text("".join(f"{key} = {value!r}\n" for key, value in settings.items()))
        emulator = Path(sys.executable).with_name("sushy-emulator")
        run.start("sushy-emulator", [str(emulator), "--config", str(config)], self._where)

    def _answers(self) -> bool:
        try:
            return bool(self.get("/redfish/v1/Systems")["Members"])
        except OSError:
            return False

    def get(self, path: str) -> dict[str, Any]:
        """Read a resource from the BMC's own namespace."""
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """One Redfish request; raises urllib.error.HTTPError for an error status."""
        credentials = b64encode(f"{self._user}:{self._password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}:{PORT}{path}", data, headers, method=method)

        def send() -> dict[str, Any]:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - always http
                told = answer.read()
                return json.loads(told) if told else {}

        return self._where.inside(send)
