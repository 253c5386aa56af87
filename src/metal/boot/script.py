"""iPXE scripts from typed values. No value can start a command or a line, or be expanded by iPXE."""

from collections.abc import Iterable
from dataclasses import dataclass

from metal.boot.errors import ScriptError

_OPERATORS = ("&&", "||", ";")
_PAUSES = (2, 4, 8, 8, 8, 8)
"""Seconds between attempts to fetch one file."""
_LONGEST = 2047
"""Bytes of an x86 kernel's command line (COMMAND_LINE_SIZE without the terminating NUL)."""
INITRD = "initrd.img"
BOOTIF = "BOOTIF=01-${net0/mac:hexhyp}"
"""Names the boot interface to the initramfs; the only value that iPXE is meant to expand."""


@dataclass(frozen=True)
class Boot:
    """One kernel, its initial RAM disks (the first is called initrd.img), and the kernel's arguments."""

    kernel: str
    initrds: tuple[str, ...]
    args: tuple[str, ...]

    def render(self) -> str:
        """The script. Raises ScriptError."""
        names = [INITRD if number == 0 else f"initrd{number}.img" for number in range(len(self.initrds))]
        args = [*(f"initrd={name}" for name in names), *map(checked, self.args), BOOTIF]
        if sum(len(arg) + 1 for arg in args) > _LONGEST:
            raise ScriptError(
                f"the kernel's arguments are longer than {_LONGEST} bytes: shorten the image's commandLine"
            )
        lines = ["#!ipxe"]
        lines += _fetch("kernel", f"kernel {_url(self.kernel)} {' '.join(args)}")
        for name, url in zip(names, self.initrds, strict=True):
            lines += _fetch(name.partition(".")[0], f"initrd --name {name} {_url(url)}")
        lines += ["boot || goto failed", *_failure()]
        return "\n".join(lines) + "\n"


def chainload(base_url: str) -> str:
    """The first script, the same for all machines: requests the machine's own script by UUID."""
    url = f"{_url(base_url)}/ipxe/${{uuid}}?mac=${{net0/mac}}"
    lines = ["#!ipxe", *_fetch("script", f"chain --replace --autofree {url}"), *_failure()]
    return "\n".join(lines) + "\n"


def tokens(command_line: str) -> tuple[str, ...]:
    """Split one line into kernel arguments. Raises ScriptError."""
    return tuple(checked(part) for part in command_line.split(" ") if part)


def checked(value: str) -> str:
    """The value, if iPXE reads it unchanged as one word. Raises ScriptError."""
    if not value or not all("!" <= char <= "~" for char in value):
        raise ScriptError(f"{_shown(value)} must be printable ASCII without blanks or line breaks")
    if "${" in value or value in _OPERATORS or value.startswith("#") or value.endswith("\\"):
        raise ScriptError(
            f"{_shown(value)} would be interpreted by iPXE ('${{', '&&', '||', ';', a leading # or a last \\)"
        )
    return value


def _url(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not value.partition("://")[2]:
        raise ScriptError(f"{_shown(value)} must be an http or https URL")
    return checked(value)


def _fetch(label: str, command: str) -> Iterable[str]:
    """Try a command several times, with pauses; continue after `label` when it succeeds."""
    for pause in _PAUSES[:-1]:
        yield f"{command} && goto {label}_done ||"
        yield f"sleep {pause}"
    yield f"{command} && goto {label}_done || goto failed"
    yield f":{label}_done"


def _failure() -> tuple[str, ...]:
    """Exit iPXE with an error: the firmware continues with its next boot entry, and the operator sees a time-out."""
    return ":failed", "echo The network boot failed", "sleep 5", "exit 1"


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "…")
