"""The BIOS of a simulated machine: what its BMC takes for it, and what it does as the machine starts."""

from typing import Any

from metal.sim.bmc import redfish_errors as errors
from metal.sim.machine.machine import Machine
from metal.sim.machine.state import BIOS_DEFAULTS


def ask_for_defaults(machine: Machine) -> None:
    """Bios.ResetBios. Raises Refusal."""
    _require_willing(machine)
    if not machine.faults.forgets_bios:
        machine.state.bios.reset_pending = True
        machine.changed()


def ask_for(machine: Machine, body: dict[str, Any]) -> None:
    """A PATCH of the settings object. Raises Refusal."""
    _require_willing(machine)
    for name in body:
        if name not in ("Attributes", "@Redfish.SettingsApplyTime"):
            raise errors.unknown_property(name)
    wanted = body.get("Attributes")
    if not isinstance(wanted, dict):
        raise errors.bad_value("Attributes", wanted)
    for name, value in wanted.items():
        if name not in BIOS_DEFAULTS:
            raise errors.unknown_property(f"Attributes/{name}")
        if not isinstance(value, str):
            raise errors.bad_value(f"Attributes/{name}", value)
    if not machine.faults.forgets_bios:
        machine.state.bios.coming |= wanted
        machine.changed()


def _require_willing(machine: Machine) -> None:
    if machine.faults.refuses_bios:
        raise errors.Refusal(400, "OperationNotAllowed", "The BIOS cannot be changed.")
