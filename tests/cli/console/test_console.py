"""metalctl console against an SSH server in this process in the role of a BMC."""

import asyncio
import json
import os
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncssh
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.cli.console import terminal
from metal.cli.console.asciicast import Recording
from metal.cli.console.escape import Escape
from tests.cli.inprocess import Bench, bench
from tests.cli.live import KINDS, METALCTL

PASSWORD = "correct horse"
QUIET = "console of s1 at 127.0.0.1; ~. ends it\nconsole of s1 closed\n"


@dataclass
class FakeBMC(asyncssh.SSHServer):
    """Has one account. Its console echoes keys and ends at Ctrl-D."""

    port: int = 0
    logins: list[str] = field(default_factory=list)
    commands: list[str | None] = field(default_factory=list)
    sizes: list[Any] = field(default_factory=list)

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self.logins.append(f"{username}:{password}")
        return (username, password) == ("root", PASSWORD)

    async def console(self, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        """Serve one session."""
        self.commands.append(process.command)
        process.stdout.write(b"login: ")
        while (typed := await self._read(process)) and b"\x04" not in typed:
            process.stdout.write(b"[" + typed + b"]")
        process.exit(0)

    async def _read(self, process: "asyncssh.SSHServerProcess[bytes]") -> bytes:
        while True:
            try:
                return await process.stdin.read(100)
            except asyncssh.TerminalSizeChanged as exc:
                self.sizes.append(exc.term_size[:2])


@asynccontextmanager
async def ssh(key: asyncssh.SSHKey, port: int = 0) -> AsyncIterator[FakeBMC]:
    fake = FakeBMC()
    server = await asyncssh.listen(
        "127.0.0.1", port, server_factory=lambda: fake, server_host_keys=[key], process_factory=fake.console,
        encoding=None, line_editor=False,
    )  # fmt: skip
    try:
        fake.port = server.sockets[0].getsockname()[1]
        yield fake
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture(scope="module")
def keys() -> list[asyncssh.SSHKey]:
    return [asyncssh.generate_private_key(kind) for kind in ("ssh-ed25519", "ssh-ed25519", "ecdsa-sha2-nistp256")]


async def rack(b: Bench, port: int, *, password: str = PASSWORD, protocol: str = "SSH", **status: Any) -> None:
    """Create a server, its BMC and its BMCSecret."""
    spec = {
        "access": {"ip": "127.0.0.1"}, "bmcSecretRef": {"name": "b1"}, "protocol": {"name": "Redfish", "port": 443},
        "consoleProtocol": {"name": protocol, "port": port},
    }  # fmt: skip
    secret = {"metadata": {"name": "b1"}, "stringData": {"username": "root", "password": password}}
    await b.live.client.create(KINDS.bmc_secret, secret)
    await b.live.client.create(KINDS.bmc, {"metadata": {"name": "b1"}, "spec": spec})
    if status:
        await b.live.client.patch_status(KINDS.bmc, "b1", {"status": status})
    await b.server("s1", {"bmcRef": {"name": "b1"}}, state="Reserved")


async def inline(b: Bench, port: int) -> None:
    """Create a server with spec.bmc, without a BMC object."""
    spec = {
        "address": "127.0.0.1", "bmcSecretRef": {"name": "b1"}, "protocol": {"name": "Redfish", "port": 443},
        "consoleProtocol": {"name": "SSH", "port": port},
    }  # fmt: skip
    secret = {"metadata": {"name": "b1"}, "stringData": {"username": "root", "password": PASSWORD}}
    await b.live.client.create(KINDS.bmc_secret, secret)
    await b.server("s1", {"bmc": spec}, state="Reserved")


class Typist:
    """A terminal whose user types a text after `login: `, and the last keys after the echo of the text."""

    def __init__(self, text: bytes, last: bytes) -> None:
        self._text, self._last, self.shown, self._more = text, last, b"", asyncio.Event()

    def size(self) -> tuple[int, int]:
        return 80, 24

    async def keys(self) -> AsyncGenerator[bytes, None]:
        await self._seen(b"login: ")
        if self._text:
            yield self._text
            await self._seen(b"]")
        yield self._last

    async def _seen(self, text: bytes) -> None:
        while text not in self.shown:
            self._more.clear()
            await self._more.wait()

    def show(self, data: bytes) -> None:
        self.shown += data
        self._more.set()

    @contextmanager
    def raw(self, on_resize: Callable[[], None]) -> Iterator[None]:
        on_resize()
        yield


async def typed(b: Bench, last: bytes, *args: str, text: bytes = b"") -> tuple[int, str, str]:
    """Return exit code, screen and stderr of a console session with typed keys."""
    typist = Typist(text, last)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "Terminal", lambda: typist)
        done = await b.run("console", "s1", *args)
    return done.code, typist.shown.decode(), done.err


async def test_the_console_pins_the_first_host_key(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    """Keys are sent and output is shown until ~.; the first host key is pinned in the status of the BMC."""
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port, manufacturer="Dell Inc.")
        cast = tmp_path / "boot.cast"
        code, out, err = await typed(b, b"~.", "--record", str(cast), text=b"hello\r")
        bmc: Any = await b.live.client.get(KINDS.bmc, "b1")
        again, _, quiet = await typed(b, b"\x04")
    assert (code, out) == (0, "login: [hello\r]"), err
    assert fake.commands == ["console com2", "console com2"]
    assert fake.sizes[0] == (80, 24)
    assert bmc.status.ssh_host_key.sha256 == keys[0].get_fingerprint()
    assert bmc.status.ssh_host_key.since is not None
    assert f"pinned the host key of BMC b1: {keys[0].get_fingerprint()}" in err
    assert (again, "from now on" in quiet) == (0, False)
    header, *events = [json.loads(line) for line in cast.read_text().splitlines()]
    assert (header["version"], header["title"]) == (2, "console s1")
    assert "".join(text for _, code, text in events if code == "o") == out
    assert cast.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("new", [1, 2])
async def test_another_host_key_is_refused_before_the_password_is_sent(
    new: int, tmp_path: Path, keys: list[asyncssh.SSHKey]
) -> None:
    """A different key, also of another type, is rejected; the message has both fingerprints and the way out, the status
    the rejected key."""
    first, second = keys[0].get_fingerprint(), keys[new].get_fingerprint()
    async with bench(tmp_path) as b, ssh(keys[new]) as fake:
        await rack(b, fake.port, sshHostKey={"sha256": first})
        code, _, err = await typed(b, b"")
        bmc: Any = await b.live.client.get(KINDS.bmc, "b1")
    assert (code, fake.logins) == (1, [])
    assert f"{first} is pinned, {second} was presented" in err, err
    assert "kubectl annotate bmcs b1 metal.ironcore.dev/operation=accept-host-key" in err
    assert (bmc.status.ssh_host_key.sha256, bmc.status.ssh_host_key.refused) == (first, second)


async def test_the_trusted_host_key_takes_the_refused_one_out_of_the_status(
    tmp_path: Path, keys: list[asyncssh.SSHKey]
) -> None:
    """When the pinned key is presented again, the rejected key is removed from the status."""
    first = keys[0].get_fingerprint()
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port, sshHostKey={"sha256": first, "refused": "SHA256:other"})
        done = await typed(b, b"~.")
        bmc: Any = await b.live.client.get(KINDS.bmc, "b1")
    assert done == (0, "login: ", QUIET)
    assert (bmc.status.ssh_host_key.sha256, bmc.status.ssh_host_key.refused) == (first, "")


async def test_a_server_with_its_own_bmc_keeps_the_host_key_in_its_status(
    tmp_path: Path, keys: list[asyncssh.SSHKey]
) -> None:
    """Without a BMC object, the key is pinned in the status of the Server, with the same console out."""
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await inline(b, fake.port)
        code, _, err = await typed(b, b"~.")
        before: Any = await b.live.client.get(KINDS.server, "s1")
        await b.live.client.patch_status(KINDS.server, "s1", {"status": {"sshHostKey": {"sha256": "SHA256:former"}}})
        refused, _, why = await typed(b, b"")
        server: Any = await b.live.client.get(KINDS.server, "s1")
    assert (code, before.status.ssh_host_key.sha256) == (0, keys[0].get_fingerprint()), err
    assert (refused, server.status.ssh_host_key.refused) == (1, keys[0].get_fingerprint())
    assert "kubectl annotate servers s1 metal.ironcore.dev/operation=accept-host-key" in why


async def test_a_host_key_that_was_pinned_meanwhile_is_the_one_that_counts(
    tmp_path: Path, keys: list[asyncssh.SSHKey]
) -> None:
    """If a controller pins another key concurrently, the console uses that one."""
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port)

        async def overtaken(self: Any, address: str, port: int = 22) -> str:
            pin = {"sha256": "SHA256:controller"}
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(written(b, pin), loop))
            return keys[0].get_fingerprint()

        loop = asyncio.get_running_loop()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("metal.bmc.ssh.SSHShell.host_key", overtaken)
            code, _, err = await typed(b, b"")
        bmc: Any = await b.live.client.get(KINDS.bmc, "b1")
    assert (code, fake.logins) == (1, [])
    assert "SHA256:controller is pinned" in err
    assert (bmc.status.ssh_host_key.sha256, bmc.status.ssh_host_key.refused) == (
        "SHA256:controller", keys[0].get_fingerprint(),
    )  # fmt: skip


async def test_a_bmc_that_was_created_again_gets_no_pin_of_its_predecessor(
    tmp_path: Path, keys: list[asyncssh.SSHKey]
) -> None:
    """The key was read from the address of the former BMC: the new one of this name may have another address."""
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port)

        async def again() -> None:
            spec = (await b.live.client.get(KINDS.bmc, "b1")).spec
            await b.live.client.delete(KINDS.bmc, "b1")
            await b.live.client.create(KINDS.bmc, {"metadata": {"name": "b1"}, "spec": msgspec.to_builtins(spec)})

        async def recreated(self: Any, address: str, port: int = 22) -> str:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(again(), loop))
            return keys[0].get_fingerprint()

        loop = asyncio.get_running_loop()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("metal.bmc.ssh.SSHShell.host_key", recreated)
            code, _, err = await typed(b, b"")
        bmc: Any = await b.live.client.get(KINDS.bmc, "b1")
    assert (code, fake.logins, bmc.status.ssh_host_key) == (1, [], None), err
    assert "bmc b1 was deleted and created again" in err


async def written(b: Bench, pin: dict[str, str]) -> None:
    """Write the status as a controller does."""
    await b.live.client.patch_status(KINDS.bmc, "b1", {"status": {"sshHostKey": pin}})


async def test_a_refused_login_names_the_secret_and_is_tried_once(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    """A rejected login is not repeated; the message names the BMCSecret and not the password."""
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port, password="wrong horse")
        code, _, err = await typed(b, b"")
    assert (code, fake.logins) == (1, ["root:wrong horse"])
    assert "rejected user name and password of BMCSecret b1" in err
    assert "horse" not in err


async def test_obstacles_have_a_message(tmp_path: Path) -> None:
    """An unsupported protocol, a missing BMC and a closed port each have a message."""
    async with bench(tmp_path) as b:
        await rack(b, 623, protocol="IPMI")
        ipmi = await b.run("console", "s1")
        await b.live.client.patch(KINDS.bmc, "b1", {"spec": {"consoleProtocol": {"name": "SSH", "port": 1}}})
        closed = await b.run("console", "s1")
        await b.live.client.delete(KINDS.bmc, "b1")
        gone, missing = await b.run("console", "s1"), await b.run("console", "s9")
    assert (ipmi.code, "only SSH is supported" in ipmi.err) == (1, True)
    assert (closed.code, "no SSH at 127.0.0.1 port 1" in closed.err) == (1, True)
    assert (gone.code, "BMC b1 does not exist" in gone.err) == (1, True)
    assert missing.code == 3


def test_ssh_is_loaded_only_when_a_console_is_opened() -> None:
    """--help and other commands do not import the SSH library."""
    code = "import sys, metal.cli.console.command, metal.cli.support.completing; sys.exit('asyncssh' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def portions(keys: bytes, cuts: list[int]) -> list[bytes]:
    """Split keys into portions."""
    edges = sorted({0, len(keys), *(cut % (len(keys) + 1) for cut in cuts)})
    return [keys[a:b] for a, b in pairwise(edges)]


_KEYS = st.lists(st.sampled_from([b"~", b".", b"?", b"\r", b"\n", b"a", b"\xff"]), max_size=12).map(b"".join)


@given(_KEYS, st.lists(st.integers(0, 20), max_size=5))
def test_keys_mean_the_same_in_any_portions(keys: bytes, cuts: list[int]) -> None:
    """Single keys and pasted text are interpreted alike."""
    whole, escape, sent, ends = Escape().feed(keys), Escape(), b"", False
    for portion in portions(keys, cuts):
        found = escape.feed(portion)
        sent += found.send
        if found.ends:
            ends = True
            break
    assert (sent, ends) == (whole.send, whole.ends)


@pytest.mark.parametrize(
    ("keys", "sent", "ends"),
    [
        (b"~.", b"", True), (b"ls\r~.x", b"ls\r", True), (b"a~.", b"a~.", False), (b"~~.", b"~.", False),
        (b"~a", b"~a", False), (b"~?~.", b"", True), (b"\n~~\n~.", b"\n~\n", True),
    ],
)  # fmt: skip
def test_the_escape_is_one_at_the_beginning_of_a_line(keys: bytes, sent: bytes, ends: bool) -> None:
    """As in ssh, a tilde elsewhere in a line is sent."""
    found = Escape().feed(keys)
    assert (found.send, found.ends) == (sent, ends)


@given(st.text(max_size=30), st.lists(st.integers(0, 100), max_size=6))
def test_a_recording_has_the_output(tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]) -> None:
    """A recording has the output, however characters are split into portions."""
    path = tmp_path_factory.mktemp("cast") / "x.cast"
    recording = Recording(path, "t", (80, 24), datetime(2026, 1, 1, tzinfo=UTC), lambda: 1.5)
    for portion in portions(text.encode("utf-8", "surrogatepass"), cuts):
        recording.shown(portion)
    recording.resized((100, 30))
    recording.close()
    header, *events = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    assert (header["width"], header["height"], header["timestamp"]) == (80, 24, 1767225600)
    shown = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert "".join(data for _, code, data in events if code == "o") == shown
    assert [1.5, "r", "100x30"] in events
    with pytest.raises(FileExistsError):
        Recording(path, "t", (80, 24), datetime(2026, 1, 1, tzinfo=UTC), lambda: 1.5)


async def test_a_terminal_is_raw_while_the_session_lasts(tmp_path: Path, keys: list[asyncssh.SSHKey]) -> None:
    """Ctrl-C is sent to the BMC; afterwards the terminal has its previous settings."""
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    async with bench(tmp_path) as b, ssh(keys[0]) as fake:
        await rack(b, fake.port)
        process = await asyncio.create_subprocess_exec(
            METALCTL, "console", "--kubeconfig", b.live.kubeconfig, "s1", stdin=theirs, stdout=theirs, stderr=theirs
        )
        try:
            shown = await screen(ours, b"login: ")
            os.write(ours, b"\x03\r")
            shown += await screen(ours, b"\r]")
            os.write(ours, b"~.")
            assert await asyncio.wait_for(process.wait(), 40) == 0
            after = termios.tcgetattr(theirs)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            os.close(ours)
            os.close(theirs)
    assert b"\x03" in shown
    assert after == before


async def screen(ours: int, text: bytes) -> bytes:
    """Read the screen until it shows a text."""
    loop, shown = asyncio.get_running_loop(), b""
    async with asyncio.timeout(40):
        while text not in shown:
            ready = loop.create_future()
            loop.add_reader(ours, ready.set_result, None)
            try:
                await ready
            finally:
                loop.remove_reader(ours)
            shown += os.read(ours, 4096)
    return shown
