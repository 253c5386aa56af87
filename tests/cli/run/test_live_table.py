"""The live table of `metalctl up` on a terminal, in real time."""

import asyncio
import os
import pty
import signal
import termios
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.run.test_up import Up

pytestmark = pytest.mark.life


class Terminal:
    """Output of a program on a terminal of 40 lines and 160 columns."""

    def __init__(self, master: int) -> None:
        self._master, self.text = master, ""
        self._more = asyncio.Event()

    def read(self) -> None:
        """Read the available output. After the end of the program, Linux answers EIO."""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.text += data.decode(errors="replace")
        self._more.set()

    async def shows(self, text: str) -> None:
        """Wait until a text is shown, for at most 15 s."""
        try:
            async with asyncio.timeout(15):
                while text not in self.text:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            raise AssertionError(f"the terminal never showed {text!r}: {self.text[-2000:]!r}") from None


@asynccontextmanager
async def on_terminal(command: list[str | Path]) -> AsyncIterator[tuple[asyncio.subprocess.Process, Terminal]]:
    """Start a program on a terminal, and kill it at the end if it is still running."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 160))
    terminal = Terminal(master)
    asyncio.get_running_loop().add_reader(master, terminal.read)
    environment = {**os.environ, "TERM": "xterm"}
    process = await asyncio.create_subprocess_exec(*command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    try:
        yield process, terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)


async def test_a_terminal_shows_servers_until_ctrl_c(tmp_path: Path) -> None:
    """A table with the greeting below it is shown, logs go to a file, and the cursor is restored at the end."""
    up = Up(tmp_path, 1)
    async with on_terminal(up.command) as (process, terminal):
        await terminal.shows("WAITING FOR")
        await terminal.shows("Discovery")
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert time.monotonic() - begun < 3
        await terminal.shows("all state is stored in")
    assert f"kubectl --kubeconfig {up.data}/kubeconfig get servers -w" in terminal.text.replace("\r\n", "")
    assert terminal.text.rfind("\x1b[?25h") > terminal.text.rfind("\x1b[?25l") >= 0
    assert '"event"' in (up.data / "log").read_text()
    assert '"event"' not in terminal.text
