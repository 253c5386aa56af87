"""The structure of an Ignition config as data (coreos.github.io/ignition, configuration specification v3)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from metal.boot.errors import IgnitionError

_SCHEMES = ("data:", "http://", "https://", "tftp://", "s3://", "gs://", "arn:")
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)")
_HASH = re.compile(r"sha512-[0-9a-f]{128}|sha256-[0-9a-f]{64}")
_MOST = 4096


class Rule(Protocol):
    """Checks one value at a JSON path."""

    def check(self, value: Any, path: str) -> None:
        """Raises IgnitionError."""
        ...


@dataclass(frozen=True)
class Plain:
    """A value of one type, or null, which Ignition allows everywhere."""

    type: type
    name: str
    more: Callable[[Any], str] | None = None
    """Returns what is wrong with a value of the right type, else an empty string."""

    def check(self, value: Any, path: str) -> None:
        if value is None:
            return
        if not isinstance(value, self.type) or (isinstance(value, bool) and self.type is not bool):
            raise IgnitionError(path, f"must be {self.name}")
        if self.more is not None and (problem := self.more(value)):
            raise IgnitionError(path, problem)


@dataclass(frozen=True)
class Many:
    """A list."""

    item: Rule

    def check(self, value: Any, path: str) -> None:
        if value is None:
            return
        if not isinstance(value, list):
            raise IgnitionError(path, "must be a list")
        if len(value) > _MOST:
            raise IgnitionError(path, f"has {len(value)} entries, {_MOST} are allowed")
        for number, item in enumerate(value):
            where = f"{path}[{number}]"
            if item is None:
                raise IgnitionError(where, "must not be null")
            self.item.check(item, where)


@dataclass(frozen=True)
class Group:
    """An object with known members; unknown ones are accepted."""

    members: Mapping[str, Rule]
    required: tuple[str, ...] = ()
    more: Callable[[Mapping[str, Any]], str] | None = field(default=None)

    def check(self, value: Any, path: str) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            raise IgnitionError(path, "must be an object")
        for name in self.required:
            if value.get(name) in (None, ""):
                raise IgnitionError(f"{path}.{name}", "is required")
        for name, rule in self.members.items():
            rule.check(value.get(name), f"{path}.{name}")
        if self.more is not None and (problem := self.more(value)):
            raise IgnitionError(path, problem)


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        return "must be an absolute path"
    return "must not contain a NUL byte" if "\0" in value else ""


def _source(value: str) -> str:
    return "" if not value or value.startswith(_SCHEMES) else f"must begin with one of {' '.join(_SCHEMES)}"


def _mode(value: int) -> str:
    return "" if 0 <= value <= 0o7777 else "must be a mode from 0 to 4095 (07777), written as a decimal number"


def _compression(value: str) -> str:
    return "" if value in ("", "gzip") else "must be gzip or empty"


def _hash(value: str) -> str:
    return "" if not value or _HASH.fullmatch(value) else "must be sha512-<128 hexadecimal digits> or sha256-<64>"


def _unit(value: str) -> str:
    return "" if _UNIT.fullmatch(value) else "must be the name of a systemd unit, such as demo.service"


def _dropin(value: str) -> str:
    return "" if value.endswith(".conf") and "/" not in value else "must end in .conf and have no slash"


TEXT, FLAG, NUMBER = Plain(str, "a string"), Plain(bool, "true or false"), Plain(int, "a whole number")
PATH, MODE = Plain(str, "a string", _absolute), Plain(int, "a whole number (JSON has no octal numbers)", _mode)
STRINGS = Many(TEXT)
OWNER = Group({"id": NUMBER, "name": TEXT})
HEADER = Group({"name": TEXT, "value": TEXT}, ("name",))
RESOURCE = Group(
    {
        "source": Plain(str, "a string", _source),
        "compression": Plain(str, "a string", _compression),
        "httpHeaders": Many(HEADER),
        "verification": Group({"hash": Plain(str, "a string", _hash)}),
    }
)
_NODE: dict[str, Rule] = {"path": PATH, "overwrite": FLAG, "user": OWNER, "group": OWNER}
FILE = Group(_NODE | {"contents": RESOURCE, "append": Many(RESOURCE), "mode": MODE}, ("path",))
DIRECTORY = Group(_NODE | {"mode": MODE}, ("path",))
LINK = Group(_NODE | {"target": TEXT, "hard": FLAG}, ("path", "target"))
UNIT = Group(
    {
        "name": Plain(str, "a string", _unit),
        "enabled": FLAG,
        "mask": FLAG,
        "contents": TEXT,
        "dropins": Many(Group({"name": Plain(str, "a string", _dropin), "contents": TEXT}, ("name",))),
    },
    ("name",),
)
USER = Group(
    {
        "name": TEXT, "passwordHash": TEXT, "sshAuthorizedKeys": STRINGS, "uid": NUMBER, "gecos": TEXT,
        "homeDir": TEXT, "noCreateHome": FLAG, "primaryGroup": TEXT, "groups": STRINGS, "noUserGroup": FLAG,
        "system": FLAG, "noLogInit": FLAG, "shell": TEXT, "shouldExist": FLAG,
    },
    ("name",),
)  # fmt: skip
GROUP = Group({"name": TEXT, "gid": NUMBER, "passwordHash": TEXT, "system": FLAG, "shouldExist": FLAG}, ("name",))
PARTITION = Group(
    {
        "label": TEXT, "number": NUMBER, "sizeMiB": NUMBER, "startMiB": NUMBER, "typeGuid": TEXT, "guid": TEXT,
        "wipePartitionEntry": FLAG, "shouldExist": FLAG, "resize": FLAG,
    }
)  # fmt: skip
RAID = Group({"name": TEXT, "level": TEXT, "devices": Many(PATH), "options": STRINGS}, ("name", "devices"))
STORAGE = Group(
    {
        "files": Many(FILE),
        "directories": Many(DIRECTORY),
        "links": Many(LINK),
        "disks": Many(Group({"device": PATH, "wipeTable": FLAG, "partitions": Many(PARTITION)}, ("device",))),
        "raid": Many(RAID),
        "filesystems": Many(
            Group(
                {
                    "device": PATH, "format": TEXT, "path": PATH, "wipeFilesystem": FLAG, "label": TEXT, "uuid": TEXT,
                    "options": STRINGS, "mountOptions": STRINGS,
                },
                ("device",),
            )
        ),
        "luks": Many(Group({"name": TEXT, "device": PATH, "keyFile": RESOURCE, "wipeVolume": FLAG}, ("name",))),
    }
)  # fmt: skip
ROOT = Group(
    {
        "ignition": Group(
            {
                "version": TEXT,
                "config": Group({"merge": Many(RESOURCE), "replace": RESOURCE}),
                "timeouts": Group({"httpResponseHeaders": NUMBER, "httpTotal": NUMBER}),
                "security": Group({"tls": Group({"certificateAuthorities": Many(RESOURCE)})}),
                "proxy": Group({"httpProxy": TEXT, "httpsProxy": TEXT, "noProxy": STRINGS}),
            }
        ),
        "storage": STORAGE,
        "systemd": Group({"units": Many(UNIT)}),
        "passwd": Group({"users": Many(USER), "groups": Many(GROUP)}),
        "kernelArguments": Group({"shouldExist": STRINGS, "shouldNotExist": STRINGS}),
    },
    ("ignition",),
)
