"""The table of vendor facts: what a manufacturer, model or firmware does differently from the Redfish standard.

A flow asks this table and contains no vendor names itself. Each row has a source that a reader can check and a test.
Patterns are regular expressions, searched without regard to case; an empty pattern matches everything.

The second table, `MESSAGES`, says what the messages of BMCs mean for a caller: whether to repeat the request. It counts
more than the HTTP status, because BMCs answer 400 where they mean "later".
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from metal.bmc.errors import BMCAuthError, BMCBadRequest, BMCBusy, BMCError, BMCServerError


@dataclass(frozen=True)
class Machine:
    """What the patterns of a row are matched against; empty where the BMC reports nothing."""

    manufacturer: str = ""
    model: str = ""
    firmware: str = ""


@dataclass(frozen=True)
class Quirks:
    """Deviations from the standard, all off by default."""

    repeat_boot_mode: bool = False
    """A boot override without a mode resets the mode to the BMC's default, so UEFI is always sent with it."""
    boot_in_settings: bool = False
    """Boot overrides are accepted by the @Redfish.Settings object only, not by the system itself."""
    no_expand: bool = False
    """Expanded collections lack properties that the members themselves have."""
    medium_is_usb_cd: bool = False
    """Of the targets Cd and UsbCd, only UsbCd boots a virtual medium."""
    asset_tag_on_chassis: bool = False
    """The firmware shows the asset tag of the chassis, not that of the system."""


NO_QUIRKS = Quirks()


@dataclass(frozen=True)
class TPMClear:
    """The BIOS attribute that clears a TPM. Redfish (DSP0268) has no action for it."""

    attribute: str
    value: str
    absent: tuple[str, str] = ("", "")
    """Attribute and value by which this BIOS reports that the system has no TPM."""

    def has_no_tpm(self, attributes: Mapping[str, Any]) -> bool:
        """True when the BIOS reports that the system has no TPM."""
        name, value = self.absent
        return bool(name) and attributes.get(name) == value


@dataclass(frozen=True)
class HttpBootAttributes:
    """BIOS attributes that take the URL of a UEFI HTTP boot, where Boot.HttpBootUri does not."""

    url: str
    """Attribute with the URL, empty without one."""
    enable: tuple[str, str] = ("", "")
    """Attribute and value without which the URL cannot be written; "Disabled" is written when the URL is removed."""
    plain: tuple[str, str] = ("", "")
    """Attribute and value without which the firmware refuses a URL without TLS."""

    def setting(self, url: str, known: Mapping[str, Any]) -> dict[str, str]:
        """What to write for this URL, or for none, to a BIOS with these attributes."""
        name, on = self.enable
        written = {name: on if url else "Disabled"} if name in known else {}
        if url.startswith("http://") and self.plain[0] in known:
            written[self.plain[0]] = self.plain[1]
        return written | {self.url: url}


@dataclass(frozen=True)
class Row:
    """Facts about the machines that match all three patterns."""

    source: str
    manufacturer: str = ""
    model: str = ""
    firmware: str = ""
    quirks: Quirks = NO_QUIRKS
    tpm_clear: TPMClear | None = None
    http_boot: HttpBootAttributes | None = None
    media_slots: str = ""
    """Pattern of the ids of virtual media that take an image by URL; empty where all do."""
    restart_command: str = ""
    """SSH command that restarts the BMC."""


_HPE_ABSENT = ("TpmState", "NotPresent")
TABLE: tuple[Row, ...] = (
    Row(
        manufacturer=r"super\s*micro",
        quirks=Quirks(repeat_boot_mode=True),
        source="A PATCH without BootSourceOverrideMode resets the mode (DMTF/Redfishtool#106, metal-operator#607).",
    ),
    Row(
        manufacturer=r"asrock",
        quirks=Quirks(boot_in_settings=True),
        source="AMI firmware moved boot properties to the FutureState resource (DMTF/Redfish-Tacklebox#144).",
    ),
    Row(
        manufacturer=r"lenovo",
        model=r"gb300",
        quirks=Quirks(no_expand=True),
        source="AMI firmware omits required properties from expanded members (nv-redfish#118).",
    ),
    Row(
        manufacturer=r"\bdell\b",
        restart_command="racreset",
        source="metal-operator, SSH reset; RACADM command racreset.",
    ),
    Row(
        manufacturer=r"\bhpe?\b|hewlett",
        restart_command="cd /map1 && reset",
        source="metal-operator, SSH reset; iLO's SMASH command line.",
    ),
    Row(
        manufacturer=r"\blenovo\b",
        restart_command="resetsp",
        source="metal-operator, SSH reset; XCC command resetsp.",
    ),
    # The attribute names of TPM 2.0 at Dell, HPE and Lenovo are their own, so these rows need no manufacturer.
    Row(tpm_clear=TPMClear("Tpm2Hierarchy", "Clear"), source="Dell BIOS attribute registry, TPM 2.0."),
    Row(tpm_clear=TPMClear("TpmCommand", "Clear"), source="Dell BIOS attribute registry, TPM 1.2."),
    Row(tpm_clear=TPMClear("Tpm2Operation", "Clear", _HPE_ABSENT), source="HPE BIOS attribute registry, TPM 2.0."),
    Row(
        manufacturer=r"^hp",
        tpm_clear=TPMClear("TpmOperation", "Clear", _HPE_ABSENT),
        source="HPE BIOS attribute registry, TPM 1.2.",
    ),
    Row(
        manufacturer=r"nvidia",
        tpm_clear=TPMClear("TpmOperation", "TPM Clear"),
        source="NVIDIA DGX BIOS attribute registry.",
    ),
    Row(
        tpm_clear=TPMClear("TrustedComputingGroup_DeviceOperation", "Clear"),
        source="Lenovo BIOS attribute registry.",
    ),
    Row(
        manufacturer=r"super\s*micro",
        model=r"^(?!ars-111gl-nhr)",
        quirks=Quirks(medium_is_usb_cd=True),
        source="openstack/sushy, set_system_boot_options: X11 and X12 boot media by UsbCd only, ARS-111GL-NHR by Cd.",
    ),
    Row(
        manufacturer=r"\blenovo\b",
        media_slots=r"^EXT\d",
        source="Lenovo XCC REST API, PATCH of a VirtualMedia: RDOC holds at most 100 MB, Remote belongs to a console.",
    ),
    Row(
        manufacturer=r"\blenovo\b|\bdell\b",
        quirks=Quirks(asset_tag_on_chassis=True),
        source="Lenovo XCC REST API, PATCH of a Chassis; Dell: reported, not tried by this project.",
    ),
    # So are the attribute names of HTTP boot at Dell and HPE. Neither row was tried on hardware by this project.
    Row(
        http_boot=HttpBootAttributes("HttpDev1Uri", ("HttpDev1EnDis", "Enabled"), ("HttpDev1TlsMode", "None")),
        source="libredfish#75 (R760, XE9680, R670); iDRAC-Redfish-Scripting#306 (EnDis); bmclib#470 (TlsMode).",
    ),
    Row(
        http_boot=HttpBootAttributes("UrlBootFile"),
        source="libredfish#76 (DL380a Gen11, iLO 6 1.58 and 1.72): iLO shows HttpBootUri and refuses to change it.",
    ),
)
RESTARTABLE = "Dell, HPE and Lenovo"
"""Manufacturers whose BMCs can be restarted over SSH, for messages."""


def quirks_for(machine: Machine, table: tuple[Row, ...] = TABLE) -> Quirks:
    """The quirks of all rows that match, combined."""
    matching = [row.quirks for row in _matching(machine, table)]
    return Quirks(**{f.name: any(getattr(quirks, f.name) for quirks in matching) for f in fields(Quirks)})


def tpm_clear_for(machine: Machine, attributes: Mapping[str, Any]) -> TPMClear | None:
    """The first row whose attribute this BIOS has; None where no row fits."""
    known = (row.tpm_clear for row in _matching(machine, TABLE) if row.tpm_clear is not None)
    return next((clear for clear in known if clear.attribute in attributes), None)


def http_boot_for(machine: Machine, attributes: Mapping[str, Any]) -> HttpBootAttributes | None:
    """The first row whose attribute this BIOS has; None where no row fits."""
    known = (row.http_boot for row in _matching(machine, TABLE) if row.http_boot is not None)
    return next((boot for boot in known if boot.url in attributes), None)


def takes_image_url(machine: Machine, slot: str, others: Iterable[str]) -> bool:
    """Whether this slot takes an image by URL; a pattern that none of the slots' ids match is not about this BMC."""
    patterns = [row.media_slots for row in _matching(machine, TABLE) if row.media_slots]
    told = [pattern for pattern in patterns if any(re.search(pattern, each, re.IGNORECASE) for each in others)]
    return all(re.search(pattern, slot, re.IGNORECASE) for pattern in told)


def restart_command(manufacturer: str) -> str:
    """The SSH command that restarts this manufacturer's BMCs; empty where none is known."""
    matching = _matching(Machine(manufacturer), TABLE)
    return next((row.restart_command for row in matching if row.restart_command), "")


def _matching(machine: Machine, table: tuple[Row, ...]) -> Iterator[Row]:
    return (row for row in table if _matches(row, machine))


def _matches(row: Row, machine: Machine) -> bool:
    return all(
        re.search(pattern, value, re.IGNORECASE) is not None
        for pattern, value in (
            (row.manufacturer, machine.manufacturer),
            (row.model, machine.model),
            (row.firmware, machine.firmware),
        )
        if pattern
    )


class ErrorClass(StrEnum):
    """What an error means for a caller. Where a BMC sends several messages, the first of these classes counts."""

    CREDENTIALS = "credentials"
    """The user name or the password is refused; repeating the request may lock the account."""
    BUSY = "busy"
    """Not now: the host is in POST, a job runs, or the BMC is starting. The same request succeeds later."""
    TRANSIENT = "transient"
    """The BMC failed internally; the same request may succeed later."""
    PERMANENT = "permanent"
    """The same request fails again until the request or a setting of the BMC is changed."""


_ERROR_TYPES: Mapping[ErrorClass, type[BMCError]] = {
    ErrorClass.CREDENTIALS: BMCAuthError,
    ErrorClass.BUSY: BMCBusy,
    ErrorClass.TRANSIENT: BMCServerError,
    ErrorClass.PERMANENT: BMCBadRequest,
}


@dataclass(frozen=True)
class MessageRow:
    """The class of some messages of one registry. Versions of a registry do not change the meaning of a message."""

    registry: str
    names: frozenset[str]
    error: ErrorClass
    source: str


def _row(registry: str, error: ErrorClass, source: str, names: str) -> MessageRow:
    return MessageRow(registry, frozenset(names.split()), error, source)


_BASE = "DMTF Base message registry (DSP8011), resolution of the message."
_ILO = "HPE iLO 5 message registry 2.90 (HPEDevCom/redfishdocs ilo5_msgregs290), resolution of the message."
MESSAGES: tuple[MessageRow, ...] = (
    _row("Base", ErrorClass.CREDENTIALS, _BASE, "ResourceAtUriUnauthorized PasswordChangeRequired"),
    _row(
        "Base", ErrorClass.BUSY, _BASE,
        "ServiceTemporarilyUnavailable ServiceShuttingDown ResourceInUse ResourceInStandby SessionLimitExceeded",
    ),
    _row("Base", ErrorClass.TRANSIENT, _BASE, "InternalError ServiceInUnknownState OperationFailed OperationTimeout"),
    _row(
        "Base", ErrorClass.PERMANENT, _BASE,
        "PropertyUnknown PropertyMissing PropertyNotWritable PropertyValueNotInList PropertyValueFormatError "
        "PropertyValueTypeError ActionNotSupported ActionParameterUnknown ActionParameterNotSupported "
        "ActionParameterMissing ActionParameterValueFormatError InsufficientPrivilege MalformedJSON",
    ),
    _row(
        "iLO", ErrorClass.CREDENTIALS, _ILO,
        "UnauthorizedLoginAttempt LoginAttemptDelayed LoginAttemptDelayedSeconds",
    ),
    _row(
        "iLO", ErrorClass.BUSY, "ironcore-dev/metal-operator#997: 400 to a boot override while the host is in POST.",
        "UnableToModifyDuringSystemPOST",
    ),
    _row(
        "iLO", ErrorClass.BUSY, _ILO,
        "OperationAvailableAfterSystemPOST ResetInProgress ResourceBeingFlashed ResourceInUseWithDetail "
        "ResourceNotReadyRetry ResourceTemporarilyUnavailable UnableToModifyWhileKVMIPConnected "
        "IndicatorLedInvalidStateChange",
    ),
    _row("iLO", ErrorClass.TRANSIENT, _ILO, "InternalErrorWithParam SystemPowerStateChangeFailed"),
    _row(
        "iLO", ErrorClass.PERMANENT, _ILO,
        "LicenseKeyRequired PropertyNotWritableOrUnknown PropertyNotSupported UnsupportedOperation "
        "UnsupportedOperationInLegacyBootMode UnsupportedOperationInSystemBIOS UnableToModifyDueToMissingComponent",
    ),
    _row(
        "iDRAC", ErrorClass.BUSY, "quadsproject/badfish#129: 400 to any request while the iDRAC is not ready.",
        "SWC0700",
    ),
    _row(
        "iDRAC", ErrorClass.BUSY, "microsoft/lisa#4421: the provider is not ready; wait a few minutes and repeat.",
        "RAC0508",
    ),
    _row(
        "iDRAC", ErrorClass.BUSY, "ironcore-dev/metal-operator#170: 503 while data sources are not available.",
        "SYS518",
    ),
    _row(
        "iDRAC", ErrorClass.BUSY, "sushy-oem-idrac repeats the 400 of an import or export while another one runs.",
        "LC068",
    ),
    _row("iDRAC", ErrorClass.TRANSIENT, "microsoft/lisa#4070: 500 to a reset; it succeeds later.", "SYS446"),
)  # fmt: skip


def error_class(message_ids: tuple[str, ...], table: tuple[MessageRow, ...] = MESSAGES) -> ErrorClass | None:
    """The class of an answer with these MessageIds, such as IDRAC.2.8.SWC0700; None where no row knows them."""
    found = {row.error for identity in message_ids for row in table if _names(row, identity)}
    return next((known for known in ErrorClass if known in found), None)


def error_type(message_ids: tuple[str, ...]) -> type[BMCError] | None:
    """The error that an answer with these MessageIds is; None where its HTTP status decides."""
    found = error_class(message_ids)
    return _ERROR_TYPES[found] if found is not None else None


def _names(row: MessageRow, identity: str) -> bool:
    """Some BMCs send the name alone, without registry and version."""
    registry, _, rest = identity.partition(".")
    name = rest.rpartition(".")[2] or identity
    return name in row.names and (not rest or registry.lower() == row.registry.lower())
