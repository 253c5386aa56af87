"""The MAC prefix database: which devices are BMCs, their protocol, and their factory credentials."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import yaml

from metal.controllers.shared.access.bmc_endpoint import PROTOCOLS
from metal.controllers.shared.yamltree import Invalid, Mapping, read_list

HEX = frozenset("0123456789abcdef")
_KEYS = (
    "macPrefix", "manufacturer", "protocol", "protocolScheme", "port", "insecureSkipVerify", "type",
    "defaultCredentials", "console",
)  # fmt: skip
CONSOLES = {name.lower(): name for name in ("IPMI", "SSH", "SSHLenovo")}


@dataclass(frozen=True)
class Credential:
    """User name and password to try on a new BMC. Its repr shows neither."""

    username: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True)
class Console:
    """How to reach the serial console."""

    type: str
    port: int


@dataclass(frozen=True)
class Prefix:
    """One entry: what is known of devices whose MAC address begins with `digits` (lower-case hexadecimal)."""

    digits: str
    line: int
    type: str
    manufacturer: str = ""
    protocol: str = "Redfish"
    scheme: str = ""
    port: int = 443
    credentials: tuple[Credential, ...] = ()
    console: Console | None = None
    insecure_skip_verify: bool = False

    @property
    def is_bmc(self) -> bool:
        """Whether such a device is a BMC; other types are only remembered."""
        return self.type == "bmc"


class PrefixError(Exception):
    """The file cannot be used. str() has one sentence per problem, each with its line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class Prefixes:
    """Entries by prefix; the longest one wins."""

    def __init__(self, entries: Iterable[Prefix] = ()) -> None:
        self._by_digits = {entry.digits: entry for entry in entries}
        self._lengths = sorted({len(digits) for digits in self._by_digits}, reverse=True)

    def __len__(self) -> int:
        return len(self._by_digits)

    def __repr__(self) -> str:
        return f"<Prefixes {' '.join(sorted(self._by_digits))}>"

    def overlaid(self, stronger: "Prefixes") -> "Prefixes":
        """These entries and the stronger ones, which replace those of the same prefix."""
        return Prefixes([*self._by_digits.values(), *stronger._by_digits.values()])

    def lookup(self, mac: str) -> Prefix | None:
        """The entry with the longest prefix of this MAC address, in any usual spelling."""
        digits = normalise(mac)
        return next((found for n in self._lengths if (found := self._by_digits.get(digits[:n]))), None)


def normalise(mac: str) -> str:
    """The hexadecimal digits of a MAC address or prefix in lower case, without separators."""
    return "".join(character for character in mac.strip().lower() if character not in ":-. ")


def parse(text: str, source: str = "mac prefixes") -> Prefixes:
    """The database in this YAML text. Raises PrefixError with a sentence for each problem, with line numbers."""
    try:
        entries = [_entry(item) for item in read_list(text, "macPrefixes", source)]
    except Invalid as exc:
        raise PrefixError([str(exc)]) from None
    except yaml.YAMLError as exc:
        raise PrefixError([_syntax(exc, source)]) from None
    problems = [entry for entry in entries if isinstance(entry, str)]
    valid = [entry for entry in entries if isinstance(entry, Prefix)]
    problems += _ambiguities(valid, source)
    if problems:
        raise PrefixError(problems)
    return Prefixes(valid)


def _entry(item: Mapping) -> Prefix | str:
    try:
        return _parsed(item)
    except Invalid as exc:
        return str(exc)


def _parsed(item: Mapping) -> Prefix:
    item.allow(*_KEYS)
    kind = item.text("type", "bmc").lower()
    scheme = item.choice("protocolScheme", {"": "", "http": "http", "https": "https"}, "")
    entry = Prefix(
        digits=_digits(item),
        line=item.line,
        type=kind,
        manufacturer=item.text("manufacturer", ""),
        protocol=item.choice("protocol", {name.lower(): name for name in PROTOCOLS}, "Redfish"),
        scheme=scheme,
        port=item.port("port", 80 if scheme == "http" else 443),
        credentials=tuple(_credential(part) for part in item.mappings("defaultCredentials")),
        console=_console(item.mapping("console")),
        insecure_skip_verify=item.flag("insecureSkipVerify"),
    )
    if entry.is_bmc and not entry.credentials:
        raise item.invalid("defaultCredentials", "is missing: list at least one username and password")
    return entry


def _digits(item: Mapping) -> str:
    """The prefix as it is written, not as YAML reads it: unquoted, 23 is a number and 12:34:56 one in base 60."""
    digits = normalise(item.raw("macPrefix"))
    if not digits or len(digits) > 12 or not HEX.issuperset(digits):
        raise item.invalid(
            "macPrefix", f'{item.raw("macPrefix")!r} is not 1 to 12 hexadecimal digits: write for example "a0:b1:c2"'
        )
    return digits


def _credential(part: Mapping) -> Credential:
    part.allow("username", "password")
    return Credential(part.raw("username"), part.raw("password"))


def _console(part: Mapping | None) -> Console | None:
    if part is None:
        return None
    part.allow("type", "port")
    return Console(part.choice("type", CONSOLES, "SSH"), part.port("port", 22))


def _ambiguities(entries: Iterable[Prefix], source: str) -> list[str]:
    first: dict[str, Prefix] = {}
    problems = []
    for entry in entries:
        known = first.setdefault(entry.digits, entry)
        if known is not entry:
            problems.append(
                f"{source}: lines {known.line} and {entry.line} both have the prefix {entry.digits}: remove one of them"
            )
    return problems


def _syntax(exc: yaml.YAMLError, source: str) -> str:
    mark = getattr(exc, "problem_mark", None)
    place = f" line {mark.line + 1}" if mark else ""
    return f"{source}{place}: not YAML: {getattr(exc, 'problem', None) or 'unreadable'}"
