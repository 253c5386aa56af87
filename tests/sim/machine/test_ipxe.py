"""The simulated iPXE runs scripts of the generator, and rejects everything else."""

import asyncio
import string
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.boot.errors import ScriptError as GeneratorError
from metal.boot.script import Boot, chainload
from metal.sim.machine.ipxe import Interpreter, Loaded, ScriptError, parse
from tests.kube.virtual import run

SETTINGS = {"uuid": "u-1", "net0/mac": "02:05:e0:00:00:01", "net0/mac:hexhyp": "02-05-e0-00-00-01"}
WORDS = st.text(string.ascii_letters + string.digits + "-_./:=?&%@,+", min_size=1, max_size=30)
LINES = st.sampled_from([
    "kernel http://x/k a=b", "initrd http://x/i", "chain http://x/c", "boot", "boot || goto failed", ":failed", ":a",
    "goto a", "goto", "sleep 1", "sleep x", "sleep", "echo hello", "exit 1", "imgargs kernel a", "imgfree", "boot ||",
    "kernel http://x/k && goto a ||", "kernel http://x/${nothing}", "&& goto a", "kernel", "dhcp", "sleep inf",
])  # fmt: skip


def fetcher(contents: dict[str, bytes | None], asked: list[str]) -> Callable[[str], Awaitable[bytes | None]]:
    """A network with these contents; an unknown URL fails."""

    async def fetch(url: str) -> bytes | None:
        asked.append(url)
        return contents.get(url)

    return fetch


def booted(text: str, contents: dict[str, bytes | None], asked: list[str] | None = None) -> Loaded | None:
    """What the script boots, in virtual time."""
    fetch = fetcher(contents, asked if asked is not None else [])
    return run(Interpreter(fetch, SETTINGS).run(text))


@given(args=st.lists(WORDS, max_size=8), initrds=st.integers(1, 4))
def test_what_the_generator_writes_is_booted(args: list[str], initrds: int) -> None:
    """Kernel, RAM disk and every argument are those given to the generator."""
    urls = [f"http://b/i{number}?token=t" for number in range(initrds)]
    try:
        script = Boot("http://b/k?token=t", tuple(urls), tuple(args)).render()
    except GeneratorError:
        return
    contents: dict[str, bytes | None] = {"http://b/k?token=t": b"K", **{url: url.encode() for url in urls}}
    loaded = booted(script, contents)
    assert loaded is not None
    assert loaded.kernel == b"K"
    assert loaded.initrds == tuple(url.encode() for url in urls)
    names = [f"initrd={'initrd' if not number else f'initrd{number}'}.img" for number in range(initrds)]
    assert loaded.args == (*names, *args, "BOOTIF=01-02-05-e0-00-00-01")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser raise anything else than ScriptError."""
    for candidate in (text, f"#!ipxe\n{text}"):
        try:
            parse(candidate)
        except ScriptError:
            continue


@settings(max_examples=60)
@given(st.lists(LINES, max_size=12))
def test_any_program_ends(lines: list[str]) -> None:
    """Any sequence of lines boots, fails or is rejected, and always ends."""
    contents: dict[str, bytes | None] = {"http://x/k": b"k", "http://x/i": b"i", "http://x/c": b"#!ipxe\nexit 1\n"}
    try:
        loaded = booted("\n".join(["#!ipxe", *lines]), contents)
    except ScriptError:
        return
    assert loaded is None or loaded.kernel == b"k"


def test_the_chainload_script_asks_with_the_uuid() -> None:
    """The first script leads to the second, by the machine's UUID and MAC address."""
    asked: list[str] = []
    second = "http://b/ipxe/u-1?mac=02:05:e0:00:00:01"
    loaded = booted(chainload("http://b"), {second: Boot("http://b/k", ("http://b/i",), ()).render().encode(),
                                            "http://b/k": b"K", "http://b/i": b"I"}, asked)  # fmt: skip
    assert loaded is not None
    assert asked == [second, "http://b/k", "http://b/i"]


def test_a_failing_download_is_tried_again_and_then_given_up() -> None:
    """The pauses are those of the script; in the end iPXE exits with an error."""
    asked: list[str] = []

    async def timed() -> tuple[Loaded | None, float]:
        script = Boot("http://b/k", ("http://b/i",), ()).render()
        return await Interpreter(fetcher({}, asked), SETTINGS).run(script), asyncio.get_running_loop().time()

    loaded, seconds = run(timed())
    assert loaded is None
    assert set(asked) == {"http://b/k"}
    assert len(asked) > 2
    assert seconds > 10


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("kernel http://x/k", "line 1"),
        ("#!ipxe\nimgfree", "line 2.*imgfree"),
        ("#!ipxe\ngoto nowhere", "label 'nowhere'"),
        ("#!ipxe\nboot || goto nowhere", "label 'nowhere'"),
        ("#!ipxe\n:Bad", "line 2.*label"),
        ("#!ipxe\nboot && exit", "only goto"),
        ("#!ipxe\nboot; exit 0", "line 2"),
        ("#!ipxe\necho \x1b[0m", "printable"),
        ("#!ipxe\nsleep 99999", "sleep"),
        ("#!ipxe\n:a\ngoto a", "end"),
        ("#!ipxe\nkernel file:///k", "URL"),
        ("#!ipxe\nkernel http://x/${net9/mac}", "no setting 'net9/mac'"),
    ],
)
def test_what_is_not_understood_is_refused(script: str, problem: str) -> None:
    """The error names the line and the problem."""
    with pytest.raises(ScriptError, match=problem):
        booted(script, {})
