"""BMC and BMCSecret: a baseboard management controller, and the credentials for it."""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from metal.api.common import LocalRef
from metal.api.markers import IMMUTABLE, IP, Choice, Length, Pattern, Port, Required, Rule, Schema, TypeSchema, kept
from metal.api.meta import Conditions, Model, ObjectMeta

_FEW = {"maxProperties": 64}


class InlineEndpoint(Model, frozen=True, kw_only=True):
    """Address of a BMC that has no Endpoint object."""

    mac_address: str = ""
    """MAC address of the BMC: six pairs of hexadecimal digits, separated by colons or hyphens or not separated. Any
    other value is reported by the condition MACAddressValid, and not used."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address of the BMC."""


class Protocol(Model, frozen=True, kw_only=True):
    """Management protocol of a BMC."""

    name: str
    """Name of the protocol. Redfish is the only supported protocol; RedfishLocal and RedfishWithRegistryPatch are
    accepted as synonyms. With any other name the BMC is not contacted (reason ProtocolNotSupported)."""
    port: Port
    """TCP port of the BMC's management service. With 0 the BMC is not contacted (reason PortNotSet)."""
    scheme: Annotated[str, Choice("", "http", "https")] = ""
    """URL scheme: http or https. http sends credentials in plain text. Defaults to bmc.scheme in the manager's
    configuration, which is https unless set."""


class ConsoleProtocol(Model, frozen=True, kw_only=True):
    """Protocol and port of the serial console. Defaults to SSH on port 22."""

    name: Annotated[str, Choice("IPMI", "SSH", "SSHLenovo")]
    """Name of the protocol: IPMI, SSH or SSHLenovo. metalctl console supports SSH and SSHLenovo; IPMI is accepted, but
    not supported."""
    port: Port
    """TCP or UDP port of the console service. 0 means 22."""


class TLSPolicy(Model, frozen=True, kw_only=True):
    """Specifies how the TLS certificate of the BMC is verified."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "!(has(self.insecureSkipVerify) && self.insecureSkipVerify)"
                " || (!has(self.fingerprint) && !has(self.caSecretRef))",
                "insecureSkipVerify accepts any certificate: remove it, or remove fingerprint and caSecretRef",
            ),
            Rule(
                "!(has(self.trustOnFirstUse) && self.trustOnFirstUse)"
                " || (!has(self.fingerprint) && !has(self.caSecretRef)"
                " && !(has(self.insecureSkipVerify) && self.insecureSkipVerify))",
                "trustOnFirstUse pins the first certificate: remove it, or remove fingerprint, caSecretRef and"
                " insecureSkipVerify",
            ),
        )
    )

    insecure_skip_verify: bool = False
    """If true, any certificate is accepted. Cannot be combined with the other fields."""
    fingerprint: Annotated[str, Pattern(r"^(([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2})?$")] = ""
    """SHA-256 fingerprint of the only certificate that is accepted: 64 hexadecimal digits, with or without colons. If
    set, caSecretRef is not used."""
    ca_secret_ref: LocalRef | None = None
    """Secret in the manager's namespace. Its key ca.crt holds the PEM certificates of the authority that signs the
    BMC's certificate."""
    trust_on_first_use: bool = False
    """If true, the first certificate that the BMC presents is pinned in status.certificate of the BMC object. A
    different certificate is rejected until it is accepted with the annotation
    metal.ironcore.dev/operation=accept-certificate. Not supported in spec.bmc of a Server, which has no status for the
    pinned certificate."""


TLS_KEPT = kept(
    "tls",
    "tls cannot be removed, because the certificate would no longer be verified as before: set tls to an empty object"
    " ({}) first",
    unless="!(has(oldSelf.tls.fingerprint) || has(oldSelf.tls.caSecretRef) || has(oldSelf.tls.insecureSkipVerify)"
    " || has(oldSelf.tls.trustOnFirstUse))",
)
"""Rule for specs with a TLSPolicy."""


class BMCSpec(Model, frozen=True, kw_only=True):
    """Desired state of a BMC: its address, its credentials and its protocols."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "has(self.access) != has(self.endpointRef)",
                "exactly one of access or endpointRef needs to be set",
            ),
            TLS_KEPT,
        )
    )

    bmc_uuid: str = msgspec.field(name="bmcUUID", default="")
    """UUID of the Redfish manager resource. If no manager has this UUID, the BMC is not used (reason ManagerNotFound).
    If it is empty, the manager with a graphical console is used, or else the first one."""
    endpoint_ref: Annotated[LocalRef | None, Rule(IMMUTABLE, "endpointRef is immutable")] = None
    """Endpoint that holds the address of the BMC. Exactly one of endpointRef and access must be set. Immutable."""
    access: Annotated[InlineEndpoint | None, Rule(IMMUTABLE, "access is immutable")] = None
    """Address of the BMC. Exactly one of endpointRef and access must be set. Immutable."""
    bmc_secret_ref: Annotated[LocalRef, Required()] = LocalRef()
    """BMCSecret that holds the user name and the password for the BMC."""
    protocol: Protocol
    """Protocol, port and URL scheme of the BMC's management service."""
    console_protocol: ConsoleProtocol | None = None
    """Protocol and port of the serial console. Defaults to SSH on port 22."""
    hostname: str = ""
    """Host name of the BMC. It is only used as the field Hostname in the template of DNS records."""
    tls: TLSPolicy | None = None
    """How the TLS certificate of the BMC is verified. Defaults to section bmc of the manager's configuration. Once it
    has a value the field cannot be removed, only set to an empty object."""
    bmc_settings_ref: LocalRef | None = None
    """Accepted for compatibility. No controller reads it."""


class Refusal(Model, frozen=True, kw_only=True):
    """Credentials that the BMC rejected. They are not used again until the BMCSecret, the spec or the address of the
    BMC changes, or one hour has passed, so that the BMC does not lock the account."""

    secret_uid: str = msgspec.field(name="secretUID", default="")
    """UID of the BMCSecret."""
    secret_generation: int = 0
    """The metadata.generation of the BMCSecret that was rejected."""
    at: datetime
    """Time at which the BMC rejected the credentials."""


class Pin(Model, frozen=True, kw_only=True):
    """A certificate or an SSH host key that was pinned at first use."""

    sha256: str = ""
    """SHA-256 fingerprint: of a certificate in hexadecimal digits, of an SSH host key in the format of ssh-keygen."""
    since: datetime | None = None
    """Time at which the certificate or host key was pinned."""
    refused: str = ""
    """SHA-256 fingerprint of a different certificate or host key that was presented later and rejected. Empty when
    there is none."""


class Restart(Model, frozen=True, kw_only=True):
    """The last requested restart of the BMC."""

    reason: str = ""
    """Reason for the restart: UserRequested (by annotation) or AutoResetting (by the controller, because the BMC kept
    failing)."""
    method: Annotated[str, Choice("", "Redfish", "SSH")] = ""
    """How the BMC was restarted: Redfish or SSH. Empty when unknown."""
    at: datetime | None = None
    """Time of the request."""
    until: datetime | None = None
    """Deadline for the BMC to answer again. The outcome is reported by the condition Reset."""


class DNSRecordRef(Model, frozen=True, kw_only=True):
    """The object that the controller created for the BMC from the template of DNS records."""

    api_version: str
    """The apiVersion of the record."""
    kind: str
    """The kind of the record."""
    namespace: Annotated[str, Length(most=63)] = ""
    """Namespace of the record. Empty for a cluster-scoped record."""
    name: Annotated[str, Length(most=253)] = ""
    """Name of the record."""


class BMCStatus(Model, frozen=True, kw_only=True):
    """Observed state of a BMC."""

    mac_address: str = ""
    """MAC address of the BMC, copied from the Endpoint or from spec.access."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IP address of the BMC, copied from the Endpoint or from spec.access."""
    manufacturer: str = ""
    """Manufacturer of the BMC."""
    model: str = ""
    """Model of the BMC."""
    sku: str = ""
    """Part number of the BMC, as it reports it."""
    serial_number: str = ""
    """Serial number of the BMC."""
    uuid: str = msgspec.field(name="uuid", default="")
    """UUID of the Redfish manager resource."""
    firmware_version: str = ""
    """Firmware version of the BMC."""
    state: str = ""
    """State of the BMC: Pending, PendingApproval (it was found by its DHCP lease and waits for an administrator), Error
    (it cannot be reached or used), or the Redfish state that it reports, usually Enabled."""
    power_state: str = ""
    """Redfish power state of the BMC itself, not of its servers: On, Off, Paused, PoweringOn, PoweringOff or
    Unknown."""
    last_reset_time: datetime | None = None
    """Time of the last reset of the BMC."""
    metrics_report_subscription_link: str = ""
    """Deprecated. Never set: the controller does not subscribe to metric reports."""
    events_subscription_link: str = ""
    """Path of the Redfish event subscription that the controller created on the BMC. Empty without a subscription."""
    event_token_digest: str = ""
    """SHA-256 digest, in hexadecimal digits, of the token in the URL to which the BMC sends its events."""
    last_event_time: datetime | None = None
    """Time at which the last event of the BMC was received, accurate to a few seconds."""
    certificate: Pin | None = None
    """TLS certificate that was pinned at first use."""
    ssh_host_key: Pin | None = None
    """SSH host key that was pinned at first use, by a controller or by metalctl console."""
    restart: Restart | None = None
    """The last restart that was requested."""
    dns_record: DNSRecordRef | None = None
    """DNS record that was last applied for the BMC."""
    systems: Annotated[dict[str, int], Schema({"maxProperties": 256})] = {}
    """Maps the UUID of each system of the BMC to the number n in the name of its Server, <bmc>-system-<n>. The number
    of a system never changes."""
    connected_secret: str = ""
    """Name of the BMCSecret with which the BMC was connected last. Empty when unknown."""
    connected_secret_uid: str = msgspec.field(name="connectedSecretUID", default="")
    """UID of that BMCSecret: another one can have its name later. Empty when unknown."""
    refused: Refusal | None = None
    """Credentials that the BMC rejected and that are currently not used."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the BMC: Ready, Reset, Enrolled (every system has a Server), Events (events are received),
    HostKeyTrusted (the SSH host key is the pinned one), DuplicateBMC (another BMC object describes the same BMC) and
    DNSRecordApplied."""


class BMC(Model, frozen=True, kw_only=True):
    """A baseboard management controller (BMC) that manages one or more servers."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BMCSpec
    status: BMCStatus = BMCStatus()


_WAS_MUTABLE = "!(has(oldSelf.immutable) && oldSelf.immutable)"


def _same(name: str) -> str:
    return f"(has(self.{name}) ? has(oldSelf.{name}) && self.{name} == oldSelf.{name} : !has(oldSelf.{name}))"


class BMCSecret(Model, frozen=True, kw_only=True):
    """Credentials of BMCs, under the keys username and password. A BMCSecret is a cluster-scoped counterpart of a
    Secret."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                f"{_WAS_MUTABLE} || (has(self.immutable) && self.immutable)", "an immutable BMCSecret stays immutable"
            ),
            Rule(
                f"{_WAS_MUTABLE} || {_same('data')}", "data of an immutable BMCSecret cannot change: create a new one"
            ),
            Rule(
                f"{_WAS_MUTABLE} || {_same('stringData')}",
                "stringData of an immutable BMCSecret cannot change: create a new one",
            ),
        )
    )

    metadata: ObjectMeta = ObjectMeta()
    immutable: bool = False
    """If true, data, stringData and this field cannot be changed. Defaults to false."""
    data: Annotated[dict[str, bytes], Schema(_FEW)] = {}
    """Values encoded in base64. The keys username and password are required."""
    string_data: Annotated[dict[str, str], Schema(_FEW)] = {}
    """Values in plain text, which take precedence over data. The controller moves them into data, unless the BMCSecret
    is immutable. Until then they can be read like data."""
    allowed_bmcs: Annotated[tuple[str, ...], Schema({"maxItems": 16384})] = msgspec.field(
        name="allowedBMCs", default=()
    )
    """Names of the BMCs that may use these credentials; server/NAME for a Server with spec.bmc, "*" for all. If empty,
    only the first BMC that uses them may (annotation metal.ironcore.dev/bound-to), and those that were connected with
    them before. The right to create BMCs would otherwise disclose every password."""
    type: str = ""
    """Type of the credentials, for other programs. No controller reads it."""
    status: "BMCSecretStatus | None" = None

    def __repr__(self) -> str:
        return f"BMCSecret({self.metadata.name}, keys={sorted({*self.data, *self.string_data})})"


class BMCSecretStatus(Model, frozen=True, kw_only=True):
    """Observed state of a BMCSecret."""

    state: Annotated[str, Choice("", "Ready", "Error")] = ""
    """State of the BMCSecret: Ready (the keys username and password are present) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    conditions: Conditions = ()
    """Conditions of the BMCSecret: Ready (the keys username and password are present)."""
