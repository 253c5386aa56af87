"""Whoever should get nothing: asks for everything that a machine may ask for, and lies about who it is."""

import urllib.error
import urllib.request
from dataclasses import dataclass, field

from tests.lab.netns import Namespace

FORGED = {"X-Forwarded-For": "10.77.0.100", "X-Real-IP": "10.77.0.100", "Forwarded": "for=10.77.0.100"}


@dataclass
class Neighbor:
    """Asks from its own namespace and keeps each answer as (request, status, body)."""

    where: Namespace
    boot_url: str
    registry_url: str
    answers: list[tuple[str, int, bytes]] = field(default_factory=list)

    def attack(self, uuid: str) -> None:
        """One round of all requests that could win something, with a known UUID and made-up tokens."""
        made_up = "x" * 43
        report = f'{{"systemUUID": "{uuid}", "data": {{"networkInterfaces": []}}}}'.encode()
        for path in (f"ipxe/{uuid}", f"ipxe/{uuid.upper()}", f"ignition/{uuid}", f"ignition/{uuid}?token={made_up}"):
            self.ask(f"{self.boot_url}/{path}")
        self.ask(f"{self.boot_url}/image?imageName=os/demo&uuid={uuid}&token={made_up}")
        self.ask(f"{self.registry_url}/register", report)
        self.ask(f"{self.registry_url}/register", report, {"Authorization": f"Bearer {made_up}"})
        self.ask(f"{self.registry_url}/systems/{uuid}")

    def won(self) -> list[tuple[str, int, bytes]]:
        """Requests that were not refused."""
        return [answer for answer in self.answers if not 400 <= answer[1] < 500 and answer[1] != 503]

    def ask(self, url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """One request; its status and the beginning of its body."""
        request = urllib.request.Request(url, body, {**FORGED, **(headers or {})})  # noqa: S310 - always http

        def send() -> tuple[int, bytes]:
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - always http
                    return answer.status, answer.read(4096)
            except urllib.error.HTTPError as refused:
                with refused:
                    return refused.code, refused.read(4096)

        status, told = self.where.inside(send)
        self.answers.append((url, status, told))
        return status, told
