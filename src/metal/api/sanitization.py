"""SanitizationEvidence: the signed record of how the drives of a server were sanitized after a claim."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.boot_window import Method, Trust
from metal.api.common import LocalRef
from metal.api.markers import Choice, Required
from metal.api.meta import Model, ObjectMeta


class Policy(StrEnum):
    """How drives must be sanitized. Clear and Purge are the categories of NIST SP 800-88."""

    NONE = "None"
    CLEAR = "Clear"
    PURGE = "Purge"


class Result(StrEnum):
    """Progress of the erasure of a drive."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    LOCKED = "Locked"
    MISSING = "Missing"
    READ_ONLY = "ReadOnly"


class Firmware(StrEnum):
    """Which part of the firmware is reset after a claim."""

    NONE = "None"
    CLEAR_TPM = "ClearTPM"
    RESET_BIOS = "ResetBIOS"


class FirmwareResult(StrEnum):
    """Progress of the firmware reset."""

    ASKED = "Asked"
    PENDING = "Pending"
    SUCCEEDED = "Succeeded"
    NOT_SUPPORTED = "NotSupported"
    UNCONFIRMED = "Unconfirmed"
    FAILED = "Failed"


class EvidencePhase(StrEnum):
    """Progress of the sanitization of a server."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class KnownDrive(Model, frozen=True, kw_only=True):
    """A drive that Discovery found. All of these must be erased after a claim."""

    name: str = ""
    """Name in the operating system of the probe. Empty for a drive that only the BMC reports."""
    serial_number: str = ""
    """Serial number of the drive."""
    wwn: str = ""
    """World Wide Name, or its equivalent (EUI-64, NGUID)."""
    size: int = 0
    """Size in bytes; 0 when unknown."""
    slot: str = ""
    """Location, as the BMC names it."""
    model: str = ""
    """Model of the drive. Two drives with one serial number and different models are different drives."""


class OwedDrive(Model, frozen=True, kw_only=True):
    """A drive of the server that has data of a claim of another Server, because it was moved."""

    drive: KnownDrive = KnownDrive()
    """The drive, as it was found in this server."""
    server: str = ""
    """Name of the Server in which the claim used the drive."""
    claim: str = ""
    """The claim as namespace/name, if it exists."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim. Empty when unknown."""
    evidence: str = ""
    """Name of the open SanitizationEvidence that lists the drive. Empty while the other Server exists."""
    policy: Annotated[str, Choice("", *Policy)] = ""
    """Policy that applies to the data."""
    erased_at: datetime | None = None
    """Time at which this server erased the drive."""
    accepted_at: datetime | None = None
    """Time at which an administrator accepted the data with the annotation
    metal.ironcore.dev/operation=accept-owed-drives."""


class DriveErasure(Model, frozen=True, kw_only=True):
    """Erasure of a drive, as reported by the probe that erased it."""

    name: str = ""
    """Name in the operating system of the probe."""
    serial_number: str = ""
    """Serial number of the drive."""
    wwn: str = ""
    """World Wide Name, or its equivalent (EUI-64, NGUID)."""
    model: str = ""
    """Model of the drive."""
    transport: str = ""
    """Transport of the drive: NVMe, SATA, SAS, SCSI, virtio or MMC."""
    size: int = 0
    """Size in bytes."""
    rotational: bool = False
    """True for a hard disk, false for other drives."""
    slot: str = ""
    """Location of the drive. Empty when unknown."""
    method: str = ""
    """Method that erased the drive, such as NVMeSanitizeCryptoErase or Overwrite."""
    class_: Annotated[str, Choice("", "Clear", "Purge")] = msgspec.field(name="class", default="")
    """Category of NIST SP 800-88 that the method reached: Clear or Purge. Empty until it has succeeded."""
    started_at: datetime | None = None
    """Time at which the erasure of the drive started."""
    ended_at: datetime | None = None
    """Time at which the erasure of the drive ended."""
    percent: int = 0
    """Completed percentage of the erasure: 0 to 100."""
    seconds_left: int | None = None
    """Remaining time in seconds, if the drive reports it."""
    samples_read: int = 0
    """Number of samples that were read back after the erasure."""
    samples_differ: int = 0
    """Number of those samples that still contain data."""
    result: Annotated[str, Choice("", *Result)] = ""
    """Result of the erasure: Pending, Running, Succeeded, Failed, Locked (the drive rejects erasure until it is
    unlocked), Missing (known from Discovery, but not found) or ReadOnly (the drive is write-protected or does not store
    writes)."""
    message: str = ""
    """Details: what failed, or why a stronger method was not used."""


class VolumeDrive(Model, frozen=True, kw_only=True):
    """A drive of a RAID volume, as the BMC reports it."""

    serial_number: str = ""
    """Serial number of the drive."""
    slot: str = ""
    """Location, as the BMC names it."""
    size: int = 0
    """Size in bytes."""
    state: str = ""
    """State, such as Enabled, StandbySpare or UnavailableOffline."""
    health: str = ""
    """Health: OK, Warning or Critical."""


class RAIDVolume(Model, frozen=True, kw_only=True):
    """A volume of a storage controller, as the BMC reports it. An operating system sees the volume instead of its
    drives."""

    name: str = ""
    """Name of the volume."""
    raid_type: str = msgspec.field(name="raidType", default="")
    """Redfish RAID type, such as RAID1."""
    wwn: str = ""
    """World-wide identifier. Empty when the BMC reports none that an operating system also sees."""
    size: int = 0
    """Size in bytes."""
    state: str = ""
    """State, such as Enabled or Disabled."""
    health: str = ""
    """Health: OK, Warning or Critical."""
    drives: tuple[VolumeDrive, ...] = ()
    """Drives of the volume. Empty when the BMC does not report all of them."""


class FirmwareReset(Model, frozen=True, kw_only=True):
    """Reset of the firmware after a claim, as the BMC reports it."""

    action: Annotated[str, Choice("", Firmware.CLEAR_TPM, Firmware.RESET_BIOS)] = ""
    """Requested reset: ClearTPM or ResetBIOS."""
    required: bool = False
    """If true, the server does not become Available until the reset has succeeded."""
    result: Annotated[str, Choice("", *FirmwareResult)] = ""
    """Result of the reset: Asked (the answer of the BMC is not known yet), Pending (it takes effect when the machine
    starts), Succeeded, NotSupported, Unconfirmed (the BMC reports nothing that shows whether it was done) or Failed."""
    asked_at: datetime | None = None
    """Time of the request to the BMC."""
    ended_at: datetime | None = None
    """Time at which the result was decided."""
    message: str = ""
    """Details of a result other than Succeeded."""


class Signature(Model, frozen=True, kw_only=True):
    """Signature of the evidence. It shows which manager signed the evidence and that it has not changed since."""

    algorithm: str = ""
    """Signature algorithm: Ed25519 (RFC 8032)."""
    key_id: str = msgspec.field(name="keyID", default="")
    """First 16 hexadecimal digits of the SHA-256 of the public key."""
    value: str = ""
    """Signature in base64, over the canonical JSON of the evidence without this field (see docs/cleanup.md)."""
    signed_at: datetime | None = None
    """Time at which the evidence was signed."""


class SanitizationEvidenceSpec(Model, frozen=True, kw_only=True):
    """Identifies the sanitization: the server, the claim and the required policy."""

    server_ref: Annotated[LocalRef, Required()] = LocalRef()
    """Server that was sanitized."""
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    """UUID of the system, in lower case."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the ServerClaim that had used the server. Empty when unknown."""
    policy: Annotated[str, Choice("", Policy.CLEAR, Policy.PURGE)] = ""
    """Required policy: Clear or Purge."""
    boot_window: str = ""
    """ID of the network boot that erased the drives."""
    boot_method: Annotated[str, Choice("", *Method)] = ""
    """How the machine was brought to that boot: VirtualMedia, UEFIHTTP or IPXE. Empty when unknown."""
    boot_trust: Annotated[str, Choice("", *Trust)] = ""
    """How far that boot is trusted: OutOfBand (its token went through the BMC), Lease (it was served to an address that
    was leased to a MAC address which the BMC shows) or FirstRequest (to the first client). Empty when unknown."""


class PreviousEvidence(Model, frozen=True, kw_only=True):
    """The signed record before this one. metalctl evidence verify reports it when it is missing or was changed."""

    name: str = ""
    """Name of the SanitizationEvidence."""
    digest: str = ""
    """SHA-256, in hexadecimal digits, over its canonical JSON without signature and acceptedAt (see
    docs/cleanup.md)."""


class SanitizationEvidenceStatus(Model, frozen=True, kw_only=True):
    """Reported and verified results of the sanitization."""

    phase: Annotated[str, Choice("", *EvidencePhase)] = ""
    """Phase of the sanitization: Running, Succeeded or Failed."""
    started_at: datetime | None = None
    """Time of the first report."""
    updated_at: datetime | None = None
    """Time at which the last report was recorded."""
    reported_at: datetime | None = None
    """Time of the final report, after which nothing is being erased."""
    ended_at: datetime | None = None
    """Time at which the result was decided."""
    drives: tuple[DriveErasure, ...] = ()
    """Erasure of each drive."""
    firmware: tuple[FirmwareReset, ...] = ()
    """Resets of the firmware, if the policy requires them."""
    problems: tuple[str, ...] = ()
    """Devices that the probe could not inspect."""
    volumes: tuple[RAIDVolume, ...] = ()
    """Volumes of storage controllers after the erasure. Read only if the probe did not see one of the server's
    drives."""
    volumes_read_at: datetime | None = None
    """Time at which the volumes were read."""
    remarks: tuple[str, ...] = ()
    """Remarks that do not prevent the server from becoming Available."""
    owed: tuple[str, ...] = ()
    """Open sanitization tasks, one sentence for each drive. The server cannot be claimed until the tasks are done, or
    an administrator accepts them with the annotation metal.ironcore.dev/operation=accept-owed-sanitization of the
    Server."""
    accepted_at: datetime | None = None
    """Time at which an administrator accepted the open tasks."""
    proves: str = ""
    """What this record proves and what it does not, in words."""
    sequence: int = 0
    """Number of this record among the signed records of its machine, from 1. 0 if it is not signed, or was signed by an
    earlier version."""
    previous: PreviousEvidence | None = None
    """The signed record of the same machine before this one. Absent in the first one."""
    signature: Signature | None = None
    """Signature of the evidence. It is created when the result is decided and renewed when open tasks are accepted."""


class SanitizationEvidence(Model, frozen=True, kw_only=True):
    """SanitizationEvidence is the signed record of one sanitization of a server. It is kept after the server and the
    claim are deleted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SanitizationEvidenceSpec = SanitizationEvidenceSpec()
    status: SanitizationEvidenceStatus = SanitizationEvidenceStatus()


class SanitizationProgress(Model, frozen=True, kw_only=True):
    """Progress of the running sanitization."""

    percent: int = 0
    """Completed percentage of all drives, weighted by size: 0 to 100."""
    time_left: str = ""
    """Estimated remaining time, such as 2h10m, from the reports of the drives or from their pace. Empty when
    unknown."""
    message: str = ""
    """Human-readable description of the progress."""
