"""The task of an erasure: the policy, and the drives of the inventory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metal.probe.erase.drives import Drive
from metal.probe.erase.methods import CLEAR
from metal.probe.erase.plan import POLICIES


@dataclass(frozen=True)
class Task:
    """The policy and the known drives."""

    policy: str = CLEAR
    drives: tuple[Drive, ...] = ()
    """The drives of the inventory; fields may be empty. Other drives are erased as well."""

    def missing(self, found: Sequence[Drive]) -> list[Drive]:
        """Drives of the inventory that are not among those found."""
        return [listed for listed in self.drives if not any(same(listed, drive) for drive in found)]

    def place(self, found: Sequence[Drive]) -> None:
        """Add what only the inventory has: the slot, and whether a drive may be a volume of other drives."""
        for drive in found:
            listed = next((each for each in self.drives if same(each, drive)), None)
            if listed is not None:
                drive.slot = drive.slot or listed.slot
                drive.may_be_volume = listed.may_be_volume


def same(listed: Drive, found: Drive) -> bool:
    """Whether both are one drive: by serial number, else by world-wide name, else by the kernel's name."""
    for mine, other in ((listed.serial, found.serial), (listed.wwn, found.wwn)):
        if mine and other:
            return mine.strip().lower() == other.strip().lower()
    return bool(listed.name) and listed.name == found.name


def read(path: Path) -> Task:
    """Read the task from a file.

    Raises:
        ValueError: the task is not valid; the text names the field.
        OSError: the file cannot be read.
    """
    try:
        told = json.loads(path.read_bytes())
    except ValueError as wrong:
        raise ValueError(f"{path} is not JSON: {wrong}") from wrong
    if not isinstance(told, dict) or told.get("policy") not in POLICIES:
        raise ValueError(f"{path}: policy must be one of {', '.join(POLICIES)}")
    listed = told.get("drives") or []
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError(f"{path}: drives must be a list of objects")
    return Task(told["policy"], tuple(_drive(path, number, each) for number, each in enumerate(listed)))


def _drive(path: Path, number: int, told: dict[str, Any]) -> Drive:
    texts = {key: told.get(key) or "" for key in ("name", "serialNumber", "wwn", "slot")}
    size = told.get("size") or 0
    for key, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"{path}: drives[{number}].{key} must be a text")
    if not isinstance(size, int):
        raise ValueError(f"{path}: drives[{number}].size must be a whole number of bytes")
    name, serial, wwn, slot = texts.values()
    return Drive(
        name, f"/dev/{name}", serial, wwn, model="", transport="", size=size, rotational=False, slot=slot,
        may_be_volume=told.get("mayBeVolume") is True,
    )  # fmt: skip
