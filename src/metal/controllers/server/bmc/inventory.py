"""Keeps the result of a discovery: as labels that claims select by, and to report changes at the next discovery."""

import re
from collections import Counter
from datetime import datetime

from metal.api.inventory import Inventory, Part
from metal.api.server import ServerStatus
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.kube.meta.conditions import is_true
from metal.machine import architecture

CHANGED = "HardwareChanged"
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 63
"""Characters of a label's value (Kubernetes, labels and selectors)."""
_LONGEST_MESSAGE = 900
"""Characters of a condition's message."""


def record(scope: Scope) -> None:
    """Keep the inventory, and report how it differs from the last one. An incomplete inventory replaces nothing."""
    old = scope.status.inventory
    if old is not None and not is_true(scope.status.conditions, ConditionType.INVENTORY_COMPLETE):
        return
    new = snapshot(scope.status, scope.now)
    scope.set(inventory=new)
    if old is not None and (found := differences(old, new)):
        text = "; ".join(found)[:_LONGEST_MESSAGE]
        scope.condition(CHANGED, True, CHANGED, f"since the inventory of {_day(old)}: {text}")
        scope.record_event(CHANGED, text, warning=True)
    elif old is not None:
        scope.condition(CHANGED, False, "Unchanged", f"the hardware is the same as in the inventory of {_day(old)}")
    else:
        scope.condition(CHANGED, False, "FirstInventory", "there is no earlier inventory to compare with")


def snapshot(status: ServerStatus, now: datetime) -> Inventory:
    """The inventory that a status describes."""
    drives = [
        Part(
            kind="Drive", id=drive.serial_number or drive.name, name=drive.name,
            text=" ".join(filter(None, (drive.capacity, drive.vendor, drive.model))),
        )
        for storage in status.storages for drive in storage.drives
    ]  # fmt: skip
    nics = [Part(kind="NetworkInterface", id=nic.mac_address, name=nic.name) for nic in status.network_interfaces]
    cpus = [Part(kind="Processor", id=cpu.id, name=cpu.id, text=cpu.model) for cpu in status.processors]
    return Inventory(
        taken_at=now, bios_version=status.bios_version, total_system_memory=status.total_system_memory,
        parts=(*drives, *nics, *cpus),
    )  # fmt: skip


def differences(old: Inventory, new: Inventory) -> list[str]:
    """Sentences, one for each part that was removed or added, and for changed firmware and memory."""
    before, after = _counted(old), _counted(new)
    found = [f"{_called(part)} is gone" for part in old.parts if before[_key(part)] > after[_key(part)]]
    found += [f"{_called(part)} is new" for part in new.parts if after[_key(part)] > before[_key(part)]]
    for what, was, is_now in (
        ("memory", old.total_system_memory, new.total_system_memory),
        ("the BIOS version", old.bios_version, new.bios_version),
    ):
        if was and is_now and was != is_now:
            found.append(f"{what} is {is_now}, formerly {was}")
    return list(dict.fromkeys(found))


def labels(status: ServerStatus) -> dict[str, str]:
    """Labels that claims select by, without the prefix; an unknown value has no label."""
    cpus = [cpu for cpu in status.processors if cpu.type in ("", "CPU")]
    drives = sum(len(storage.drives) for storage in status.storages)
    found = {
        "architecture": _value(status.architecture or architecture.of_processors(cpus)),
        "cores": str(sum(cpu.total_cores for cpu in cpus) or ""),
        "memory": status.total_system_memory,
        "drives": str(drives or ""),
        "manufacturer": _value(status.manufacturer),
        "model": _value(status.model),
    }
    return {name: value for name, value in found.items() if value}


def label_changes(scope: Scope) -> dict[str, str | None]:
    """The merge patch for the server's labels; None removes one."""
    if scope.status.inventory is None:
        return {}
    prefix = f"inventory.{scope.context.kinds.group}/"
    wanted = {prefix + name: value for name, value in labels(scope.status).items()}
    there = {key: value for key, value in scope.server.metadata.labels.items() if key.startswith(prefix)}
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if there.get(key) != value}
    return changes | dict.fromkeys(there.keys() - wanted.keys())


def _value(text: str) -> str:
    """A text as a label's value: words joined by dashes."""
    return _FOREIGN.sub("-", text)[:_LONGEST].strip("-._")


def _key(part: Part) -> tuple[str, str]:
    return part.kind, part.id


def _counted(inventory: Inventory) -> Counter[tuple[str, str]]:
    return Counter(map(_key, inventory.parts))


def _called(part: Part) -> str:
    words = {"Drive": "drive", "NetworkInterface": "network interface", "Processor": "processor"}
    more = ", ".join(text for text in (part.name if part.name != part.id else "", part.text) if text)
    return f"{words.get(part.kind, part.kind)} {part.id}" + (f" ({more})" if more else "")


def _day(inventory: Inventory) -> str:
    return f"{inventory.taken_at:%Y-%m-%d}"
