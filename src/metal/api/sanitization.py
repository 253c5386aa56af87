"""SanitizationEvidence: what became of the data that a tenant left on a server's drives, drive by drive, signed."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.common import LocalRef
from metal.api.markers import Choice, Required
from metal.api.meta import Model, ObjectMeta


class Policy(StrEnum):
    """What must become of a tenant's data. Clear and Purge are those of NIST SP 800-88."""

    NONE = "None"
    CLEAR = "Clear"
    PURGE = "Purge"


class Result(StrEnum):
    """How far the erasure of one drive has come."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    LOCKED = "Locked"
    MISSING = "Missing"
    READ_ONLY = "ReadOnly"


class Firmware(StrEnum):
    """What of a machine's firmware is put back after a tenant; one of them, see docs/cleanup.md."""

    NONE = "None"
    CLEAR_TPM = "ClearTPM"
    RESET_BIOS = "ResetBIOS"


class FirmwareResult(StrEnum):
    """How far that has come."""

    ASKED = "Asked"
    PENDING = "Pending"
    SUCCEEDED = "Succeeded"
    NOT_SUPPORTED = "NotSupported"
    UNCONFIRMED = "Unconfirmed"
    FAILED = "Failed"


class EvidencePhase(StrEnum):
    """Whether a server's drives are erased."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class KnownDrive(Model, frozen=True, kw_only=True):
    """A drive that the server had when it was discovered: every one must be erased after a tenant."""

    name: str = ""
    """Name in the probe's operating system; empty for a drive that only the BMC knows."""
    serial_number: str = ""
    """Serial number."""
    wwn: str = ""
    """World Wide Name, or what stands for it (EUI-64, NGUID)."""
    size: int = 0
    """Size in bytes; 0 when it is not known."""
    slot: str = ""
    """Where it is, in the BMC's words."""


class DriveErasure(Model, frozen=True, kw_only=True):
    """What was done to one drive, as the system that did it reported."""

    name: str = ""
    """Name in that operating system."""
    serial_number: str = ""
    """Serial number."""
    wwn: str = ""
    """World Wide Name, or what stands for it (EUI-64, NGUID)."""
    model: str = ""
    """Model."""
    transport: str = ""
    """NVMe, SATA, SAS, SCSI, virtio or MMC."""
    size: int = 0
    """Size in bytes."""
    rotational: bool = False
    """True for a hard disk."""
    slot: str = ""
    """Where it is, as far as anybody knows."""
    method: str = ""
    """What erased it, such as NVMeSanitizeCryptoErase or Overwrite."""
    class_: Annotated[str, Choice("", "Clear", "Purge")] = msgspec.field(name="class", default="")
    """What that method reaches by NIST SP 800-88: Clear or Purge; empty until it has succeeded."""
    started_at: datetime | None = None
    """When its erasure began."""
    ended_at: datetime | None = None
    """When its erasure ended."""
    percent: int = 0
    """How much of it is done."""
    seconds_left: int | None = None
    """How long it will take still, where the drive says."""
    samples_read: int = 0
    """How many places were read back afterwards."""
    samples_differ: int = 0
    """At how many of them the drive does not look erased."""
    result: Annotated[str, Choice("", *Result)] = ""
    """Pending, Running, Succeeded, Failed, Locked, Missing or ReadOnly."""
    message: str = ""
    """What failed, or why better methods did not do."""


class VolumeDrive(Model, frozen=True, kw_only=True):
    """One drive of a RAID volume, as the BMC tells it."""

    serial_number: str = ""
    """Serial number."""
    slot: str = ""
    """Where it is, in the BMC's words."""
    size: int = 0
    """Size in bytes."""
    state: str = ""
    """Enabled, StandbySpare, UnavailableOffline, …"""
    health: str = ""
    """OK, Warning or Critical."""


class RAIDVolume(Model, frozen=True, kw_only=True):
    """A volume of a storage controller, as the BMC tells it: what a system sees in place of the drives."""

    name: str = ""
    """Name."""
    raid_type: str = msgspec.field(name="raidType", default="")
    """RAID type."""
    wwn: str = ""
    """World-wide identifier; empty when the BMC tells none that a system sees, too."""
    size: int = 0
    """Size in bytes."""
    state: str = ""
    """Enabled, Disabled, …"""
    health: str = ""
    """OK, Warning or Critical."""
    drives: tuple[VolumeDrive, ...] = ()
    """Its drives; none when the BMC does not tell all of them."""


class FirmwareReset(Model, frozen=True, kw_only=True):
    """What was done to the firmware, as its BMC says."""

    action: Annotated[str, Choice("", Firmware.CLEAR_TPM, Firmware.RESET_BIOS)] = ""
    """ClearTPM or ResetBIOS."""
    required: bool = False
    """Whether the server is held back until it has succeeded."""
    result: Annotated[str, Choice("", *FirmwareResult)] = ""
    """Asked, Pending (it takes effect as the machine starts), Succeeded, NotSupported, Unconfirmed (the BMC shows
    nothing by which it could be read back) or Failed."""
    asked_at: datetime | None = None
    """When the BMC was asked for it."""
    ended_at: datetime | None = None
    """When the result was known."""
    message: str = ""
    """Why it is not Succeeded."""


class Signature(Model, frozen=True, kw_only=True):
    """Proves who wrote the evidence, and that it was not changed since."""

    algorithm: str = ""
    """Ed25519 (RFC 8032)."""
    key_id: str = msgspec.field(name="keyID", default="")
    """First 16 hexadecimal digits of the SHA-256 of the public key."""
    value: str = ""
    """Signature in base64, over the evidence in canonical JSON without this field (docs/cleanup.md)."""
    signed_at: datetime | None = None
    """When it was signed."""


class SanitizationEvidenceSpec(Model, frozen=True, kw_only=True):
    """Which server's erasure this is, after which tenant, to which policy."""

    server_ref: Annotated[LocalRef, Required()] = LocalRef()
    """Server whose drives were erased."""
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """UUID of the system, in lower case."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the ServerClaim whose tenant had used it; empty when nobody knows."""
    policy: Annotated[str, Choice("", Policy.CLEAR, Policy.PURGE)] = ""
    """What had to be reached: Clear or Purge."""
    boot_window: str = ""
    """Id of the network boot that erased it."""


class SanitizationEvidenceStatus(Model, frozen=True, kw_only=True):
    """What was done."""

    phase: Annotated[str, Choice("", *EvidencePhase)] = ""
    """Running, Succeeded or Failed."""
    started_at: datetime | None = None
    """When the first report arrived."""
    updated_at: datetime | None = None
    """When the last report was written down."""
    reported_at: datetime | None = None
    """When the final report arrived: nothing is being erased any more."""
    ended_at: datetime | None = None
    """When the verdict was reached."""
    drives: tuple[DriveErasure, ...] = ()
    """What was done to each drive."""
    firmware: tuple[FirmwareReset, ...] = ()
    """What was done to the machine's firmware, where the policy asks for it."""
    problems: tuple[str, ...] = ()
    """What the system that erased could not look at."""
    volumes: tuple[RAIDVolume, ...] = ()
    """Volumes of storage controllers when the erasure had ended. Read only where the system that erased did not see a
    drive of the server."""
    volumes_read_at: datetime | None = None
    """When they were read."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing and nothing to hold the server back for."""
    owed: tuple[str, ...] = ()
    """What is still to be done before anybody else may have the server; a sentence for each drive."""
    accepted_at: datetime | None = None
    """When somebody accepted what is owed (operation accept-owed-sanitization)."""
    signature: Signature | None = None
    """Made once there is a verdict, and again when what is owed was accepted."""


class SanitizationEvidence(Model, frozen=True, kw_only=True):
    """Evidence of one erasure. It outlives the server and the claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SanitizationEvidenceSpec = SanitizationEvidenceSpec()
    status: SanitizationEvidenceStatus = SanitizationEvidenceStatus()


class SanitizationProgress(Model, frozen=True, kw_only=True):
    """How far the erasure that is under way has come."""

    percent: int = 0
    """Of all drives together, by size."""
    time_left: str = ""
    """How long it will take still, such as 2h10m, by what the drives say or by their pace; empty when neither does."""
    message: str = ""
    """In a few words."""
