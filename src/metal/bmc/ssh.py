"""Restarts a BMC that no longer answers Redfish: one command over SSH, to a host whose key is pinned."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from metal.bmc.calls import logged_write
from metal.bmc.errors import BMCAuthError, BMCHostKeyChanged, BMCServerError, BMCTimeout, BMCUnreachable
from metal.bmc.shell import ShellAccess

if TYPE_CHECKING:  # imported at run time where it is used: few managers ever connect over SSH, and it is slow to load
    import asyncssh

_ANSWER = 10.0
"""Seconds to wait for the result of a command; a BMC that restarts at once never returns one."""
_LONGEST = 200
"""Characters of a BMC's output that a message quotes."""


class SSHShell:
    """Implements metal.bmc.shell.Shell.

    Args: permit raises when no BMC may be changed now; connect_timeout is in seconds.
    """

    def __init__(self, *, permit: Callable[[], None] = lambda: None, connect_timeout: float = 15.0) -> None:
        self._permit, self._connect_timeout = permit, connect_timeout

    def __repr__(self) -> str:
        return "<SSHShell>"

    async def host_key(self, address: str, port: int = 22) -> str:
        """SHA-256 of the key, as ssh-keygen shows it. No credentials are sent."""
        import asyncssh

        async with _mapped(address, port, self._connect_timeout):
            key = await asyncssh.get_server_host_key(address, port, config=None)
        if key is None:
            raise BMCServerError(f"The SSH server at {address}:{port} shows no host key.")
        return key.get_fingerprint()

    async def run(self, access: ShellAccess, command: str) -> None:
        """A connection that breaks after the command was sent is not a failure: the BMC is restarting."""
        with logged_write(access.address, "ssh", {"command": command}) as call:
            self._permit()
            connection = await connect(access, self._connect_timeout)
            try:
                call.sent = 1
                await _run(connection, access, command)
            finally:
                connection.abort()


async def connect(access: ShellAccess, limit: float, *, keepalive: float = 0) -> "asyncssh.SSHClientConnection":
    """Log in within `limit` seconds. The password is sent once (lock-outs), and only to the pinned host key.

    `keepalive` is the seconds without traffic after which a keepalive message is sent; 0: never.
    Raises BMCHostKeyChanged and other BMCErrors.
    """
    import asyncssh

    seen: list[str] = []

    class Pinned(asyncssh.SSHClient):
        def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
            seen.append(key.get_fingerprint())
            return seen[-1] == access.host_key

    async with _mapped(access.address, access.port, limit):
        try:
            return await asyncssh.connect(
                access.address, access.port, username=access.username, password=access.password,
                client_factory=Pinned, known_hosts=([], [], []), client_keys=None, agent_path=None, config=None,
                preferred_auth="password,keyboard-interactive", keepalive_interval=keepalive,
            )  # fmt: skip
        except asyncssh.HostKeyNotVerifiable:
            raise BMCHostKeyChanged(access.host_key, seen[-1] if seen else "", access.address) from None


async def _run(connection: "asyncssh.SSHClientConnection", access: ShellAccess, command: str) -> None:
    import asyncssh

    result: asyncssh.SSHCompletedProcess | None = None
    with suppress(TimeoutError, asyncssh.Error, OSError):
        async with asyncio.timeout(_ANSWER):
            result = await connection.run(command, check=False)
    if result is not None and result.exit_status:
        said = " ".join(str(part) for part in (result.stdout, result.stderr) if part)
        said = said.replace(access.password or "\0", "***")
        words = " ".join(said.split())[:_LONGEST] or f"exit status {result.exit_status}"
        raise BMCServerError(f"{access.address} did not carry out {command!r} over SSH: {words}.")


@asynccontextmanager
async def _mapped(address: str, port: int, limit: float) -> AsyncIterator[None]:
    """Map errors of asyncssh to BMCErrors, within `limit` seconds."""
    import asyncssh

    place = f"{address}:{port}"
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise BMCTimeout(f"{place} did not answer SSH within {limit:g} s.") from None
    except asyncssh.PermissionDenied:
        raise BMCAuthError(f"{place} refused the user name or password over SSH.") from None
    except OSError as exc:
        raise BMCUnreachable(f"No SSH connection to {place}: {exc.strerror or type(exc).__name__}.") from None
    except asyncssh.Error as exc:
        raise BMCUnreachable(f"SSH with {place} ended: {str(exc.reason)[:_LONGEST]}.") from None
