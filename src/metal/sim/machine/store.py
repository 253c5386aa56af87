"""Saves the state of a fleet to a file and loads it, including boots in progress."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from metal.sim.machine.machine import Machine
from metal.sim.machine.state import State


class Saved(msgspec.Struct, kw_only=True):
    """The content of the file: JSON, one entry for each machine by UUID."""

    version: int = 1
    machines: dict[str, State] = msgspec.field(default_factory=dict)


class Unreadable(Exception):
    """The file is not a saved fleet. str() says what to do."""


def save(path: Path, machines: Iterable[Machine]) -> None:
    """Replace the file atomically; mode 0600, because it contains report tokens. Raises OSError."""
    saved = Saved(machines={machine.identity.uuid: machine.state for machine in machines})
    new = path.with_name(path.name + ".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(saved))
    new.replace(path)


def load(path: Path, machines: Iterable[Machine]) -> None:
    """Give each machine its saved state; machines that are not in the file remain unchanged. Raises Unreadable."""
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=Saved)
    except FileNotFoundError:
        return
    except (OSError, msgspec.DecodeError) as exc:
        raise Unreadable(f"{path} cannot be used ({exc}): remove it to start with fresh machines") from None
    for machine in machines:
        machine.adopt(saved.machines.get(machine.identity.uuid))
