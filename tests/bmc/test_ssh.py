"""Restarts over SSH, against an SSH server on loopback that acts as a BMC."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh
import pytest

from metal.bmc.errors import (
    BMCAuthError,
    BMCError,
    BMCHostKeyChanged,
    BMCServerError,
    BMCTimeout,
    BMCUnreachable,
)
from metal.bmc.shell import Shell, ShellAccess
from metal.bmc.ssh import SSHShell

PASSWORD = "made up for this test"


@dataclass
class Console(asyncssh.SSHServer):
    """A BMC's command line: the received commands, and the reaction to them."""

    exit_status: int | None = 0
    says: str = "done\n"
    hangs_up: bool = False
    offered: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self.offered.append(password)
        return (username, password) == ("root", PASSWORD)

    async def play(self, process: asyncssh.SSHServerProcess[str]) -> None:
        """Execute a command."""
        self.commands.append(process.command or "")
        if self.hangs_up:
            process.get_extra_info("connection").abort()
            return
        process.stdout.write(self.says)
        process.exit(self.exit_status or 0)


@asynccontextmanager
async def served(console: Console, key: asyncssh.SSHKey | None = None) -> AsyncIterator[int]:
    """The console behind a host key; yields its port."""
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=lambda: console, process_factory=console.play,
        server_host_keys=[key or asyncssh.generate_private_key("ssh-ed25519")],
    )  # fmt: skip
    try:
        yield server.get_port()
    finally:
        server.close()
        await server.wait_closed()


async def access(port: int, password: str = PASSWORD, key: str = "") -> ShellAccess:
    key = key or await SSHShell().host_key("127.0.0.1", port)
    return ShellAccess("127.0.0.1", port, "root", password, key)


async def test_a_command_runs_once_on_the_host_with_the_pinned_key() -> None:
    """The key is the one that ssh-keygen shows; it is read without credentials."""
    console, key = Console(), asyncssh.generate_private_key("ssh-ed25519")
    shell: Shell = SSHShell()
    async with served(console, key) as port:
        seen = await shell.host_key("127.0.0.1", port)
        assert console.offered == []
        await shell.run(await access(port, key=seen), "racreset")
    assert seen == key.get_fingerprint()
    assert (console.offered, console.commands) == ([PASSWORD], ["racreset"])


async def test_a_changed_host_key_is_refused_before_any_password_is_sent() -> None:
    """The error names both keys, and has the new one as an attribute."""
    console = Console()
    async with served(console) as port:
        with pytest.raises(BMCHostKeyChanged, match="and was SHA256:other") as caught:
            await SSHShell().run(await access(port, key="SHA256:other"), "racreset")
        assert caught.value.seen == await SSHShell().host_key("127.0.0.1", port)
    assert (console.offered, console.commands) == ([], [])


async def test_a_bmc_that_hangs_up_instead_of_answering_has_taken_the_command() -> None:
    """It restarts and returns no exit status."""
    console = Console(hangs_up=True)
    async with served(console) as port:
        await SSHShell().run(await access(port), "resetsp")
    assert console.commands == ["resetsp"]


async def test_a_refused_command_is_an_error_with_the_bmcs_words() -> None:
    """Shortened, on one line, and without the password if the BMC repeats it."""
    console = Console(exit_status=1, says=f"Unknown\ncommand for {PASSWORD} " + "x" * 500)
    async with served(console) as port:
        with pytest.raises(BMCServerError, match=r"'racreset' over SSH: Unknown command for \*\*\*") as caught:
            await SSHShell().run(await access(port), "racreset")
    assert len(str(caught.value)) < 300


async def test_a_wrong_password_is_offered_once() -> None:
    """Repetition could lock the account; the message has no secret."""
    console = Console()
    async with served(console) as port:
        with pytest.raises(BMCAuthError) as caught:
            await SSHShell().run(await access(port, password="wrong one"), "racreset")
    assert console.offered == ["wrong one"]
    assert "wrong one" not in str(caught.value)
    assert console.commands == []


async def test_nobody_there_nobody_speaking_and_nonsense_have_their_errors() -> None:
    """A closed port, a port without an answer, and a server that is not SSH."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    outcomes: list[type[BMCError]] = []
    for handler in (silent, nonsense, None):
        server = await asyncio.start_server(handler or silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        if handler is None:
            server.close()
            await server.wait_closed()
        with pytest.raises(BMCError) as caught:
            await SSHShell(connect_timeout=0.3).run(ShellAccess("127.0.0.1", port, "root", "p", "k"), "racreset")
        outcomes.append(caught.type)
        server.close()
    assert outcomes == [BMCTimeout, BMCUnreachable, BMCUnreachable]


async def test_who_may_change_nothing_does_not_even_connect() -> None:
    """A manager that lost its leadership restarts no BMC."""

    class Deposed(Exception):
        pass

    def forbid() -> None:
        raise Deposed

    console = Console()
    async with served(console) as port:
        allowed = await access(port)
        with pytest.raises(Deposed):
            await SSHShell(permit=forbid).run(allowed, "racreset")
    assert console.offered == []


def test_no_password_shows_in_a_repr() -> None:
    """Neither user name nor password."""
    assert repr(ShellAccess("a", 22, "root", "s3cret", "k")) == "ShellAccess(address='a', port=22, host_key='k')"
