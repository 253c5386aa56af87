"""An unauthorized client: sends every request that a machine may send, with forged headers and the known UUID."""

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from tests.lab.netns import Namespace

LONGEST = 1 << 20
"""Bytes of an answer that are kept."""
FORGED = {"X-Forwarded-For": "10.77.0.100", "X-Real-IP": "10.77.0.100", "Forwarded": "for=10.77.0.100"}


@dataclass
class Neighbor:
    """Sends requests from its own namespace and records each response as (request, status, body)."""

    where: Namespace
    boot_url: str
    registry_url: str
    answers: list[tuple[str, int, bytes]] = field(default_factory=list)

    def attack(self, uuid: str) -> None:
        """One round of all requests that could succeed, with a known UUID and invented tokens."""
        made_up = "x" * 43
        for path in (f"ipxe/{uuid}", f"ipxe/{uuid.upper()}", f"ignition/{uuid}", f"ignition/{uuid}?token={made_up}"):
            self.ask(f"{self.boot_url}/{path}")
        self.ask(f"{self.boot_url}/image?imageName=os/demo&uuid={uuid}&token={made_up}")
        self.report(uuid, "")
        self.report(uuid, made_up)
        self.ask(f"{self.registry_url}/systems/{uuid}")

    def steal_script(self, uuid: str) -> str | None:
        """Request the boot script; returns its token if it was served."""
        status, script = self.ask(f"{self.boot_url}/ipxe/{uuid}")
        return re.findall(rb"token=([\w-]+)", script)[0].decode() if status == 200 else None

    def report(self, uuid: str, token: str) -> tuple[int, bytes]:
        """Send a false report, with a token or without."""
        nic = {"name": "eth0", "macAddress": "66:66:66:66:66:66", "ipAddresses": ["10.77.0.66"], "carrierStatus": "up"}
        body = json.dumps({"systemUUID": uuid, "data": {"networkInterfaces": [nic]}}).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.ask(f"{self.registry_url}/register", body, headers)

    def won(self) -> list[tuple[str, int, bytes]]:
        """Requests that were not refused."""
        return [answer for answer in self.answers if not 400 <= answer[1] < 500 and answer[1] != 503]

    def ask(self, url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Send one request; returns its status and body."""
        request = urllib.request.Request(url, body, {**FORGED, **(headers or {})})  # noqa: S310 - always http

        def send() -> tuple[int, bytes]:
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - always http
                    return answer.status, answer.read(LONGEST)
            except urllib.error.HTTPError as refused:
                with refused:
                    return refused.code, refused.read(LONGEST)

        status, told = self.where.inside(send)
        self.answers.append((url, status, told))
        return status, told
