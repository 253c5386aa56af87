"""What each state of a Server permits, and what it waits for: one table, for everything that decides by the state.

A controller that asks "may this be done in that state?" asks `traits_of` instead of listing states. So a
new state is the enum `metal.api.server.State`, a module in this package, a row in `TRAITS`, and its registration in
`reconciler.STATES`; `make generate` writes the row into the CRD and docs/states.md.

The module imports nothing but names, so that every layer and every controller may import it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from metal.api.server import State
from metal.controllers.server.reasons import WaitFor


class PowerOwner(StrEnum):
    """What decides whether the machine is to be on or off."""

    STATE = "the state"
    CLAIM = "the claim"
    MAINTENANCE = "the maintenance"
    UNCHANGED = "nothing, the power is left unchanged"


class BMCUse(StrEnum):
    """Whether a state needs the BMC."""

    NEEDED = "needed"
    OPTIONAL = "optional"
    UNUSED = "not used"


@dataclass(frozen=True)
class Blocked:
    """Why a maintenance cannot take a server yet: reason and text of its condition; `{name}` is the server's name."""

    reason: str
    awaited: str


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What one state permits."""

    claimable: bool = False
    """A claim may take the server."""
    claim_boots: bool = False
    """A claim that holds the server writes its boot configuration."""
    released: bool = False
    """No claim uses the server any more; `metalctl release --wait` ends."""
    parkable: bool = False
    """operation=park is executed; in other states it is deferred."""
    interruptible: bool = False
    """A maintenance takes the server out of the state at once."""
    resumable: bool = True
    """operation=retry goes back to the state when it was interrupted by Error."""
    discovered: bool = True
    """The hardware is known; before, the next step boots the probe, powered on or off."""
    boots_probe: bool = False
    """Network boots run the probe, so another probe image is another boot."""
    closes_boot_window: bool = False
    """Entering the state ends a network boot that is in progress."""
    owed_when_deleted: bool = False
    """When the Server is deleted, an erasure may be outstanding although nothing of a tenant is recorded as served."""
    power: PowerOwner = PowerOwner.STATE
    """What decides whether the machine is on or off."""
    bmc: BMCUse = BMCUse.NEEDED
    """Whether the BMC is needed: an outage of a needed BMC becomes a failure."""
    blocks_maintenance: Blocked | None = None
    """Why a maintenance has to wait until the state is left; None when it may take the server."""
    waits: tuple[WaitFor, ...] = ()
    """What is awaited, beside the waits of every state."""


_POWER = (WaitFor.POWER_OFF, WaitFor.POWER_ON)
_BOOT = (
    WaitFor.BOOT_CONFIGURATION, WaitFor.BOOT_TRUST, WaitFor.BOOT_CONFIRMATION, WaitFor.BOOT_RETRY, *_POWER,
)  # fmt: skip

TRAITS: Mapping[State, Traits] = {
    State.INITIAL: Traits(discovered=False, closes_boot_window=True, waits=(WaitFor.DRIVE_OWED,)),
    State.DISCOVERY: Traits(
        parkable=True, interruptible=True, discovered=False, boots_probe=True,
        waits=(*_BOOT, WaitFor.PROBE_REPORT, WaitFor.DRIVE_OWED),
    ),
    State.AVAILABLE: Traits(
        claimable=True, claim_boots=True, released=True, parkable=True, interruptible=True,
        waits=(WaitFor.POWER_OFF, WaitFor.ERASURE_WAVE),
    ),
    State.RESERVED: Traits(
        claim_boots=True, parkable=True, interruptible=True, owed_when_deleted=True, power=PowerOwner.CLAIM,
        waits=(WaitFor.DRIVE_OWED, *_BOOT, WaitFor.CLAIM_BOOT, WaitFor.BOOT_OVERRIDE),
    ),
    State.CLEANUP: Traits(
        claim_boots=True, boots_probe=True, closes_boot_window=True, owed_when_deleted=True,
        blocks_maintenance=Blocked(
            "ServerInCleanup", "the cleanup of server {name} after its last claim to end"
        ),
        waits=(*_BOOT, WaitFor.FIRMWARE_RESET, WaitFor.SANITIZATION, WaitFor.DRIVE_OWED),
    ),
    State.RELEASED: Traits(released=True, interruptible=True, waits=(WaitFor.POWER_OFF, WaitFor.RELEASE)),
    State.MAINTENANCE: Traits(
        claim_boots=True, closes_boot_window=True, power=PowerOwner.MAINTENANCE, bmc=BMCUse.OPTIONAL,
        waits=(*_BOOT, WaitFor.MAINTENANCE, WaitFor.MAINTENANCE_BOOT, WaitFor.BOOT_OVERRIDE),
    ),
    State.PARKED: Traits(
        resumable=False, closes_boot_window=True, power=PowerOwner.UNCHANGED, bmc=BMCUse.UNUSED,
        blocks_maintenance=Blocked("ServerParked", "server {name} to be unparked"),
        waits=(WaitFor.UNPARK, WaitFor.POWER_OFF),
    ),
    State.ERROR: Traits(
        claim_boots=True, interruptible=True, resumable=False, power=PowerOwner.UNCHANGED, waits=(WaitFor.REPAIR,)
    ),
}  # fmt: skip


_UNKNOWN = Traits(resumable=False)


def traits_of(state: str) -> Traits:
    """The traits of a state as status has it.

    A Server without a state is about to enter Initial; a state of another operator or version permits nothing.
    """
    return TRAITS.get(cast("State", state or State.INITIAL), _UNKNOWN)


@dataclass(frozen=True)
class Awaited:
    """One wait: what is awaited, and the settings of the Server controller with its default deadline and poll."""

    what: str
    """What is awaited, for the documentation."""
    deadline: str = ""
    """Setting with the default deadline in seconds; empty when there is none."""
    poll: str = "resync"
    """Setting with the default pause before the next check."""


EVERY_STATE = (
    WaitFor.BMC, WaitFor.BMC_OPERATION, WaitFor.BMC_BUSY, WaitFor.BMC_RESTART, WaitFor.TAKEOVER_GO_AHEAD,
    WaitFor.CUSTOM_RESOURCE_DEFINITIONS, WaitFor.FORMER_TENANT, WaitFor.DUPLICATE_SYSTEM, WaitFor.MACHINE_IDENTITY,
)  # fmt: skip
"""Waits that any state may name."""
WITHOUT_STATE = (WaitFor.FORMER_TENANT,)
"""Waits of a Server that has no state yet."""

WAITS: Mapping[WaitFor, Awaited] = {
    WaitFor.BMC: Awaited("the BMC to answer", "bmc_timeout", "bmc_retry"),
    WaitFor.BMC_OPERATION: Awaited("an operation on the BMC to succeed that failed", "bmc_timeout", "bmc_retry"),
    WaitFor.BMC_BUSY: Awaited(
        "the BMC or the host to be ready for an operation, for instance after POST", "bmc_timeout", "bmc_retry"
    ),
    WaitFor.BMC_RESTART: Awaited("the BMC to answer after its restart", poll="bmc_retry"),
    WaitFor.TAKEOVER_GO_AHEAD: Awaited("operation=retry, for a server that another operator managed"),
    WaitFor.CUSTOM_RESOURCE_DEFINITIONS: Awaited("CRDs with the fields of this operator"),
    WaitFor.DUPLICATE_SYSTEM: Awaited("the removal of a duplicate: another Server is in charge of the same machine"),
    WaitFor.MACHINE_IDENTITY: Awaited("a decision by an administrator: which machine this is cannot be told"),
    WaitFor.FORMER_TENANT: Awaited(
        "a decision by an administrator: it is ambiguous which claim owns the data on the drives"
    ),
    WaitFor.DRIVE_OWED: Awaited(
        "a decision by an administrator: a drive may have data of a claim that exists and uses another Server"
    ),
    WaitFor.POWER_OFF: Awaited("power Off: graceful first, forced after `timeouts.graceful`", "power_timeout"),
    WaitFor.POWER_ON: Awaited("power On", "power_timeout"),
    WaitFor.BOOT_CONFIGURATION: Awaited(
        "the image to be downloaded and the Ignition to be valid", "boot_config_timeout"
    ),
    WaitFor.BOOT_TRUST: Awaited(
        "a way to boot with the minimum trust, before the machine is powered on", "boot_config_timeout"
    ),
    WaitFor.BOOT_CONFIRMATION: Awaited("the verification that the machine itself booted", "race_window"),
    WaitFor.BOOT_RETRY: Awaited("the pause before the next network boot to end", "boot_retry"),
    WaitFor.BOOT_OVERRIDE: Awaited(
        "the BMC to clear its network boot override before a tenant's machine is switched on", "power_timeout"
    ),
    WaitFor.PROBE_REPORT: Awaited("the probe to send its report of this boot", "discovery_timeout"),
    WaitFor.CLAIM_BOOT: Awaited("the machine to fetch the tenant's Ignition", "claim_boot_timeout"),
    WaitFor.FIRMWARE_RESET: Awaited("the BMC to accept the reset of BIOS or TPM", "power_timeout", "bmc_retry"),
    WaitFor.ERASURE_WAVE: Awaited("the erasure of other adopted servers to end; `adoption.wave` at a time"),
    WaitFor.SANITIZATION: Awaited("the drives to be erased", "sanitization_timeout"),
    WaitFor.MAINTENANCE: Awaited("the maintenance to end; `timeouts.maintenance` raises an alert"),
    WaitFor.MAINTENANCE_BOOT: Awaited("the machine to fetch the Ignition of the maintenance", "claim_boot_timeout"),
    WaitFor.RELEASE: Awaited("an administrator to remove `spec.serverClaimRef`"),
    WaitFor.UNPARK: Awaited("operation=unpark"),
    WaitFor.REPAIR: Awaited("the cause to be removed, or operation=retry"),
}
