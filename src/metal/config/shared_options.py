"""Digests of the options that decide about machines, by which managers with different ones are noticed.

Each manager shows its own as a metric, and writes them to the Lease when it becomes the leader; if its predecessor's
differ, an Event says in which. Options that each manager has for itself, such as addresses, do not count. Of files,
the path counts and not the content.
"""

import dataclasses
import hashlib
from collections.abc import Mapping

from metal.api.kinds import kinds
from metal.api.names import BMC_NETWORKS, BOOT_URL, OPTIONS
from metal.config.describe import scalar
from metal.config.load import key_of
from metal.config.options import Config

_OWN = ("listen", "advertise", "election", "limits")


def digests(config: Config) -> dict[str, str]:
    """The first characters of the SHA-256 of each section, or option without a section."""
    names = (field.name for field in dataclasses.fields(config) if field.name not in _OWN)
    return {key_of(name): _digest(getattr(config, name)) for name in names}


def _digest(value: object) -> str:
    options = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else {"": value}  # type: ignore[arg-type]
    lines = "\n".join(f"{name}: {scalar(option)}" for name, option in options.items())
    return hashlib.sha256(lines.encode()).hexdigest()[:8]


def annotations(config: Config) -> dict[str, str]:
    """The annotations of the Lease: the digests, and what a DHCP server has to know of this manager."""
    key = kinds(config.api_group).key
    return {
        _annotation(config): ",".join(f"{name}={digest}" for name, digest in digests(config).items()),
        key(BOOT_URL): config.boot_url,
        key(BMC_NETWORKS): ",".join(config.enrolment.networks),
    }


def differing(config: Config, former: Mapping[str, str]) -> list[str]:
    """Sections and options that the former leader, with these annotations of the Lease, has or had otherwise."""
    told = former.get(_annotation(config), "")
    theirs = dict(part.split("=", 1) for part in told.split(",") if "=" in part)
    return [name for name, digest in digests(config).items() if theirs.get(name, digest) != digest]


def _annotation(config: Config) -> str:
    return kinds(config.api_group).key(OPTIONS)
