"""Changes of the system and its chassis by PATCH: boot override, boot order, LED and asset tag."""

from typing import Any

from metal.sim.bmc import redfish_errors as errors
from metal.sim.bmc import redfish_tree as tree
from metal.sim.machine.machine import Machine
from metal.sim.machine.state import Override
from metal.sim.options import Carrier

_BOOT_VALUES = {
    "BootSourceOverrideEnabled": tree.ENABLED,
    "BootSourceOverrideTarget": tree.TARGETS,
    "BootSourceOverrideMode": tree.MODES,
}
_LONGEST_TAG = 32


def of_system(machine: Machine, body: dict[str, Any]) -> None:
    """A PATCH of the system. Raises Refusal."""
    known = ("Boot", "IndicatorLED", "LocationIndicatorActive", *_tag(machine, Carrier.ASSET_TAG))
    for name in body:
        if name not in known:
            raise errors.unknown_property(name)
    if "Boot" in body:
        _boot(machine, body["Boot"])
    if "LocationIndicatorActive" in body:
        machine.state.led = "Lit" if body["LocationIndicatorActive"] else "Off"
    if "IndicatorLED" in body:
        machine.state.led = _choice("IndicatorLED", body["IndicatorLED"], tuple(tree.LEDS))
    if "AssetTag" in body:
        _write_tag(machine, body["AssetTag"])
    machine.changed()


def of_chassis(machine: Machine, body: dict[str, Any]) -> None:
    """A PATCH of the chassis. Raises Refusal."""
    for name in body:
        if name not in _tag(machine, Carrier.CHASSIS_ASSET_TAG):
            raise errors.unknown_property(name)
    _write_tag(machine, body.get("AssetTag", machine.state.asset_tag))
    machine.changed()


def _tag(machine: Machine, carrier: Carrier) -> tuple[str, ...]:
    return ("AssetTag",) if carrier in machine.carriers else ()


def _write_tag(machine: Machine, tag: object) -> None:
    if not isinstance(tag, str) or len(tag) > _LONGEST_TAG:
        raise errors.bad_value("AssetTag", tag)
    machine.state.asset_tag = tag


def _boot(machine: Machine, boot: object) -> None:
    if not isinstance(boot, dict):
        raise errors.bad_value("Boot", boot)
    uri = ("HttpBootUri",) if Carrier.HTTP_BOOT_URI in machine.carriers else ()
    for name, value in boot.items():
        if name in _BOOT_VALUES:
            _choice(name, value, _BOOT_VALUES[name])
        elif name not in ("BootOrder", *uri):
            raise errors.unknown_property(f"Boot/{name}")
    if "BootOrder" in boot:
        machine.state.boot_order = _order(machine, boot["BootOrder"])
    _override(machine, boot)


def _override(machine: Machine, boot: dict[str, Any]) -> None:
    old = machine.state.override
    new = Override(
        enabled=boot.get("BootSourceOverrideEnabled", old.enabled),
        target=boot.get("BootSourceOverrideTarget", old.target),
        mode=boot.get("BootSourceOverrideMode", old.mode),
        http_boot_uri=boot.get("HttpBootUri", old.http_boot_uri) or "",
    )
    if new != old and not machine.faults.drops_override:
        machine.state.override = new
        machine.note("override", enabled=new.enabled, target=new.target, by="bmc")


def _order(machine: Machine, order: object) -> list[str]:
    known = machine.state.boot_order
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(known):
        raise errors.bad_value("Boot/BootOrder", order, known)
    return order


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise errors.bad_value(name, value, allowed)
    return value
