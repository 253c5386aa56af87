"""The SSH command line of a BMC."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class ShellAccess:
    """How to reach a BMC's command line over SSH."""

    address: str
    port: int = 22
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    host_key: str = ""
    """SHA-256 of the only accepted host key, as ssh-keygen shows it."""


class Shell(Protocol):
    """A BMC's command line over SSH. Raises BMCError; BMCHostKeyChanged before any credentials are sent."""

    async def host_key(self, address: str, port: int = 22) -> str:
        """SHA-256 of the host key shown there now, as ssh-keygen shows it."""
        ...

    async def run(self, access: ShellAccess, command: str) -> None:
        """Run a command that makes the BMC restart, and so ends the connection."""
        ...
