"""BIOS settings of a simulated machine: changes are accepted by its BMC and applied when the machine starts."""

from typing import Any

from metal.sim.bmc import redfish_errors as errors
from metal.sim.machine.machine import Machine
from metal.sim.machine.state import BIOS_DEFAULTS


def reset_to_defaults(machine: Machine) -> None:
    """Bios.ResetBios. Raises Refusal."""
    _require_writable(machine)
    if not machine.faults.forgets_bios:
        machine.state.bios.reset_pending = True
        machine.changed()


def apply_settings(machine: Machine, body: dict[str, Any]) -> None:
    """A PATCH of the settings object. Raises Refusal."""
    _require_writable(machine)
    for name in body:
        if name not in ("Attributes", "@Redfish.SettingsApplyTime"):
            raise errors.unknown_property(name)
    wanted = body.get("Attributes")
    if not isinstance(wanted, dict):
        raise errors.bad_value("Attributes", wanted)
    known = {*BIOS_DEFAULTS, *machine.bios_attributes}
    for name, value in wanted.items():
        if name not in known:
            raise errors.unknown_property(f"Attributes/{name}")
        if not isinstance(value, str):
            raise errors.bad_value(f"Attributes/{name}", value)
    if not machine.faults.forgets_bios:
        machine.state.bios.pending |= wanted
        machine.changed()


def _require_writable(machine: Machine) -> None:
    if machine.faults.refuses_bios:
        raise errors.Refusal(400, "OperationNotAllowed", "The BIOS cannot be changed.")
