"""Names in a Server's status that one module writes and another compares: waits, failures and condition types.

They are part of the API: programs, alerts and `metalctl why` read them.
"""

from enum import StrEnum


class WaitFor(StrEnum):
    """Names of waits (`status.wait.for`). What each means, and its deadline, is in `traits.WAITS`."""

    BMC = "BMC"
    BMC_BUSY = "BMCBusy"
    BMC_OPERATION = "BMCOperation"
    BMC_RESTART = "BMCRestart"
    BOOT_CONFIGURATION = "BootConfiguration"
    BOOT_CONFIRMATION = "BootConfirmation"
    BOOT_OVERRIDE = "BootOverride"
    BOOT_RETRY = "BootRetry"
    BOOT_TRUST = "BootTrust"
    CLAIM_BOOT = "ClaimBoot"
    CUSTOM_RESOURCE_DEFINITIONS = "CustomResourceDefinitions"
    DRIVE_OWED = "DriveOwed"
    DUPLICATE_SYSTEM = "DuplicateSystem"
    ERASURE_WAVE = "ErasureWave"
    FIRMWARE_RESET = "FirmwareReset"
    FORMER_TENANT = "FormerTenant"
    MACHINE_IDENTITY = "MachineIdentity"
    MAINTENANCE = "Maintenance"
    MAINTENANCE_BOOT = "MaintenanceBoot"
    POWER_OFF = "PowerOff"
    POWER_ON = "PowerOn"
    PROBE_REPORT = "ProbeReport"
    RELEASE = "Release"
    REPAIR = "Repair"
    SANITIZATION = "Sanitization"
    TAKEOVER_GO_AHEAD = "TakeoverGoAhead"
    UNPARK = "Unpark"


class Reason(StrEnum):
    """Reasons of failures (`status.failure.reason`), beside those of `metal.bmc.errors`."""

    BOOT_CONFIGURATION_NOT_READY = "BootConfigurationNotReady"
    BOOT_CONTESTED = "BootContested"
    BOOT_OVERRIDE_KEPT = "BootOverrideKept"
    BOOT_TRUST_TOO_LOW = "BootTrustTooLow"
    EVIDENCE_LOST = "EvidenceLost"
    FORMER_TENANT = "FormerTenant"
    """Of an earlier version; now the wait FormerTenant."""
    IDENTITY_MISMATCH = "IdentityMismatch"
    INVALID_SPEC = "InvalidSpec"
    NETWORK_BOOT_FAILED = "NetworkBootFailed"
    POWER_OFF_TIMEOUT = "PowerOffTimeout"
    POWER_ON_TIMEOUT = "PowerOnTimeout"
    REPORT_LOST = "ReportLost"
    SANITIZATION_OWED = "SanitizationOwed"
    SIGNING_KEY_UNUSABLE = "SigningKeyUnusable"
    STATUS_OUTDATED = "StatusOutdated"


ERASED_BY_RETRY = frozenset({Reason.EVIDENCE_LOST, Reason.SANITIZATION_OWED, Reason.STATUS_OUTDATED})
"""Failures after which operation=retry does nothing but erase the drives."""


def purpose_of_retry(reason: str) -> str:
    """What a retry after this failure is for, as the beginning of a sentence that ends with the command."""
    return "To erase the data" if reason in ERASED_BY_RETRY else "To try again"


def summary(reason: str, message: str) -> str:
    """A failure for `status.waitingFor`, a column of `kubectl get`: what happened, without what to do about it."""
    return f"{reason}: {message.split('. ', 1)[0]}"


class ConditionType(StrEnum):
    """Types of a Server's conditions that more than one module uses."""

    BMC_OPERATIONAL = "BMCOperational"
    BMC_REACHABLE = "BMCReachable"
    BOOT_ASSUMED = "BootAssumed"
    DISCOVERED = "Discovered"
    IDENTITY_MISMATCH = "IdentityMismatch"
    DRIVE_OWED = "DriveOwed"
    DUPLICATE_SYSTEM = "DuplicateSystem"
    IDENTITY_AMBIGUOUS = "IdentityAmbiguous"
    INVENTORY_COMPLETE = "InventoryComplete"
    READY = "Ready"
    SANITIZED = "Sanitized"
    TAKEN_OVER = "TakenOver"


class Operation(StrEnum):
    """Names of operations on a BMC (`status.failingOperations`, `status.failure.operation`)."""

    CONNECT = "connect"
    """Address, credentials and trust are resolved."""
    IDENTIFY = "identify-system"
    """The system that the BMC shows is compared with the Server."""
    READ_SYSTEM = "read-system"
    READ_SYSTEMS = "read-systems"
    READ_INVENTORY = "read-inventory"
    READ_FIRMWARE = "read-firmware-settings"
    POWER_ON = "power-on"
    POWER_OFF = "power-off"
    FORCE_POWER_OFF = "force-power-off"
    RESET = "reset"
    SET_BOOT_OVERRIDE = "set-boot-override"
    CLEAR_BOOT_OVERRIDE = "clear-boot-override"
    SET_BOOT_ORDER = "set-boot-order"
    SET_INDICATOR_LED = "set-indicator-led"
    RESET_BIOS = "reset-bios"
    CLEAR_TPM = "clear-tpm"
    READ_BOOT_METHODS = "read-boot-methods"
    """What the BMC offers to boot from, and what is set there."""
    INSERT_MEDIUM = "insert-medium"
    EJECT_MEDIUM = "eject-medium"
    SET_HTTP_BOOT = "set-http-boot"
    CLEAR_HTTP_BOOT = "clear-http-boot"
    SET_ASSET_TAG = "set-asset-tag"


CONTACT = (Operation.CONNECT, Operation.IDENTIFY, Operation.READ_SYSTEM, Operation.READ_SYSTEMS)
"""Operations that every pass begins with, also in Error: their failure means that the BMC is not reachable."""

_OF_BMC = "BMC"


def of_bmc(reason: str) -> str:
    """The reason of a failure that ends as soon as its operation succeeds."""
    return reason if reason.startswith(_OF_BMC) else f"{_OF_BMC}{reason}"


def is_of_bmc(reason: str) -> bool:
    """True for a failure that ends as soon as its operation succeeds."""
    return reason.startswith(_OF_BMC)
