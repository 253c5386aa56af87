"""iPXE scripts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.errors import ScriptError
from metal.boot.script import BOOTIF, Boot, chainload, checked, tokens

BASE = "http://10.0.0.1:8082"


def boot(*args: str, kernel: str = f"{BASE}/k", initrds: tuple[str, ...] = (f"{BASE}/i",)) -> Boot:
    return Boot(kernel, initrds, args)


def test_a_script_loads_kernel_and_initrd_and_boots() -> None:
    """The kernel line names the initrd, has the arguments, and names the boot interface."""
    lines = boot("console=ttyS0", "rdinit=/init").render().splitlines()
    assert lines[0] == "#!ipxe"
    assert f"kernel {BASE}/k initrd=initrd.img console=ttyS0 rdinit=/init {BOOTIF} && goto kernel_done ||" in lines
    assert f"initrd --name initrd.img {BASE}/i && goto initrd_done ||" in lines
    assert lines.index(":kernel_done") < lines.index(":initrd_done") < lines.index("boot || goto failed")


def test_every_fetch_is_tried_a_bounded_number_of_times_with_pauses() -> None:
    """After the last attempt the script exits iPXE with an error."""
    lines = boot().render().splitlines()
    attempts = [line for line in lines if line.startswith("kernel ")]
    assert len(attempts) == 6
    assert attempts[-1].endswith("|| goto failed")
    assert sum(line.startswith("sleep ") for line in lines[: lines.index(":kernel_done")]) == 5
    assert lines[-1] == "exit 1"


def test_every_label_that_is_gone_to_exists() -> None:
    """A missing label would end the script."""
    words = boot(initrds=(f"{BASE}/i", f"{BASE}/j")).render().split()
    targets = {word for before, word in pairwise(words) if before == "goto"}
    assert targets == {word[1:] for word in words if word.startswith(":")}


def test_the_first_script_asks_again_with_the_uuid_of_the_machine() -> None:
    """iPXE fills in UUID and MAC address."""
    assert "chain --replace --autofree http://10.0.0.1:8082/ipxe/${uuid}?mac=${net0/mac}" in chainload(BASE)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a b",
        "a\nb",
        "a\rb",
        "a\0b",
        "a\tb",
        "${net0/mac}",
        "x${y}",
        "&&",
        "||",
        ";",
        "#note",
        "back\\",
        "ü",
        "\x7f",
        "\u2028",
    ],
)
def test_what_ipxe_would_interpret_is_refused(value: str) -> None:
    """Line breaks, NUL, blanks, expansions, operators, comments, continuations, and non-ASCII characters."""
    with pytest.raises(ScriptError):
        boot(value).render()
    with pytest.raises(ScriptError):
        boot(
            kernel=f"http://h/{value}" if value not in ("&&", "||", ";", "#note") else value
        ).render() if value else checked(value)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "tftp://h/k", "http://", "HTTP://h", "//h/k", "imgfetch"])
def test_only_http_urls_are_fetched(url: str) -> None:
    """No file, no TFTP, no relative URL."""
    with pytest.raises(ScriptError):
        boot(kernel=url).render()
    with pytest.raises(ScriptError):
        boot(initrds=(url,)).render()
    with pytest.raises(ScriptError):
        chainload(url)


def test_a_command_line_that_the_kernel_would_cut_is_refused() -> None:
    """The kernel would silently truncate the Ignition URL at its end."""
    with pytest.raises(ScriptError, match="2047"):
        boot(*(f"argument{n}=value" for n in range(200))).render()


def test_a_command_line_is_split_at_blanks_only() -> None:
    """Quotes are unchanged: the kernel interprets them."""
    assert tokens('  console=ttyS0  dyndbg="file a.c +p" ') == ("console=ttyS0", 'dyndbg="file', "a.c", '+p"')


@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=20), st.text(max_size=20))
def test_no_input_whatever_adds_a_line_to_a_script(args: list[str], kernel: str, initrd: str) -> None:
    """A script of any accepted values has exactly the lines of one with harmless values."""
    harmless = boot(*("x" for _ in args)).render()
    try:
        script = boot(*args, kernel=f"http://h/{kernel}", initrds=(f"http://h/{initrd}",)).render()
    except ScriptError:
        return
    assert len(script.splitlines()) == len(harmless.splitlines())
    assert script.count("${") == harmless.count("${")
    assert not set(script) & {"\r", "\0"}
    for line, other in zip(script.splitlines(), harmless.splitlines(), strict=True):
        assert len(line.split()) == len(other.split())
