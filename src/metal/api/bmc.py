"""BMC: one baseboard management controller and how to reach it."""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from metal.api.common import LocalRef
from metal.api.markers import IMMUTABLE, IP, MAC, Choice, Length, Pattern, Port, Required, Rule, Schema, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta

_FEW = {"maxProperties": 64}


class InlineEndpoint(Model, frozen=True, kw_only=True):
    """Address of a BMC without an Endpoint object."""

    mac_address: MAC = ""
    """MAC address of the BMC, six pairs of hexadecimal digits."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IPv4 or IPv6 address of the BMC."""


class Protocol(Model, frozen=True, kw_only=True):
    """How to speak to the BMC."""

    name: Annotated[str, Length(1)]
    """Redfish (RedfishLocal and RedfishWithRegistryPatch mean the same here)."""
    port: Port
    """TCP port."""
    scheme: Annotated[str, Choice("", "http", "https")] = ""
    """https (also when empty) or http, which must be asked for."""


class ConsoleProtocol(Model, frozen=True, kw_only=True):
    """How to reach the serial console."""

    name: Annotated[str, Choice("IPMI", "SSH", "SSHLenovo")]
    """IPMI, SSH or SSHLenovo."""
    port: Port
    """TCP or UDP port."""


class TLSPolicy(Model, frozen=True, kw_only=True):
    """Which certificate of the BMC is accepted."""

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
    """True accepts any certificate."""
    fingerprint: Annotated[str, Pattern(r"^(([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2})?$")] = ""
    """SHA-256 of the only accepted certificate: 64 hexadecimal digits, with or without colons."""
    ca_secret_ref: LocalRef | None = None
    """Secret in the manager's namespace whose key ca.crt signs the BMC's certificate."""
    trust_on_first_use: bool = False
    """True pins the first certificate that is seen (status.certificate); another one is refused until it is accepted
    with operation=accept-certificate."""


class BMCSpec(Model, frozen=True, kw_only=True):
    """How the BMC is reached."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "has(self.access) != has(self.endpointRef)",
                "exactly one of access or endpointRef needs to be set",
            ),
        )
    )

    bmc_uuid: str = msgspec.field(name="bmcUUID", default="")
    """UUID of the Redfish manager, where a BMC has more than one."""
    endpoint_ref: Annotated[LocalRef | None, Rule(IMMUTABLE, "endpointRef is immutable")] = None
    """Endpoint that holds the address; exactly one of endpointRef and access."""
    access: Annotated[InlineEndpoint | None, Rule(IMMUTABLE, "access is immutable")] = None
    """The address itself; exactly one of endpointRef and access."""
    bmc_secret_ref: Annotated[LocalRef, Required()] = LocalRef()
    """BMCSecret with the credentials."""
    protocol: Protocol
    """Management protocol."""
    console_protocol: ConsoleProtocol | None = None
    """Serial console."""
    hostname: str = ""
    """Host name of the BMC, for DNS records."""
    tls: TLSPolicy | None = None
    """Which certificate is accepted; without it the manager's configuration decides."""
    bmc_settings_ref: LocalRef | None = None
    """BMCSettings that are being applied."""


class Refusal(Model, frozen=True, kw_only=True):
    """Credentials that the BMC refused. They rest until they change or an hour has passed, for fear of a lock-out."""

    secret_uid: str = msgspec.field(name="secretUID", default="")
    """UID of the BMCSecret."""
    secret_generation: int = 0
    """Generation of the BMCSecret."""
    at: datetime
    """When they were refused."""


class Pin(Model, frozen=True, kw_only=True):
    """What a BMC proved to be at first sight, and is held to from then on."""

    sha256: str = ""
    """SHA-256 of it: of a certificate in hexadecimal, of an SSH host key as ssh-keygen shows it."""
    since: datetime | None = None
    """When it was pinned."""
    refused: str = ""
    """SHA-256 of another one that was shown since and not accepted."""


class Restart(Model, frozen=True, kw_only=True):
    """The last restart of the BMC that was asked for."""

    reason: str = ""
    """UserRequested or AutoResetting."""
    method: Annotated[str, Choice("", "Redfish", "SSH")] = ""
    """How the BMC was told: Redfish or SSH; empty when that is not known."""
    at: datetime | None = None
    """When it was asked for."""
    until: datetime | None = None
    """Until when the BMC is waited for; what happens then is said in the condition Reset."""


class DNSRecordRef(Model, frozen=True, kw_only=True):
    """The object that was made of the template of DNS records."""

    api_version: str
    """apiVersion of the record."""
    kind: str
    """Kind of the record."""
    namespace: Annotated[str, Length(most=63)] = ""
    """Namespace of the record; empty for a cluster-scoped one."""
    name: Annotated[str, Length(most=253)] = ""
    """Name of the record."""


class BMCStatus(Model, frozen=True, kw_only=True):
    """What the BMC said of itself."""

    mac_address: MAC = ""
    """MAC address, from the endpoint."""
    ip: IP = msgspec.field(name="ip", default=None)
    """IP address, from the endpoint."""
    manufacturer: str = ""
    """Manufacturer of the BMC."""
    model: str = ""
    """Model of the BMC."""
    sku: str = ""
    """Part number of the BMC."""
    serial_number: str = ""
    """Serial number of the BMC."""
    firmware_version: str = ""
    """Firmware version of the BMC."""
    state: str = ""
    """Enabled, Error or Pending, or another Redfish state."""
    power_state: str = ""
    """Power state of the BMC."""
    last_reset_time: datetime | None = None
    """When the BMC was last reset."""
    metrics_report_subscription_link: str = ""
    """Redfish event destination for metric reports."""
    events_subscription_link: str = ""
    """Redfish event destination for alerts."""
    event_token_digest: str = ""
    """SHA-256 of the token in the path that the BMC sends its events to."""
    last_event_time: datetime | None = None
    """When the last event came from the BMC, give or take some seconds."""
    certificate: Pin | None = None
    """Certificate that was pinned at first use."""
    ssh_host_key: Pin | None = None
    """SSH host key that was pinned at first use, by a controller or by a person at the console."""
    restart: Restart | None = None
    """The last restart that was asked for."""
    dns_record: DNSRecordRef | None = None
    """DNS record that was last written for it."""
    systems: Annotated[dict[str, int], Schema({"maxProperties": 256})] = {}
    """Number that each system's UUID was given at first sight; it names the Server for ever."""
    refused: Refusal | None = None
    """Credentials that were refused and are not tried for now."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Ready, Reset, Enrolled (whether every system has its Server), Events (whether events arrive), HostKeyTrusted
    (whether SSH shows the pinned key) and DNSRecordApplied."""


class BMC(Model, frozen=True, kw_only=True):
    """One baseboard management controller."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BMCSpec
    status: BMCStatus = BMCStatus()


_WAS_MUTABLE = "!(has(oldSelf.immutable) && oldSelf.immutable)"


def _same(name: str) -> str:
    return f"(has(self.{name}) ? has(oldSelf.{name}) && self.{name} == oldSelf.{name} : !has(oldSelf.{name}))"


class BMCSecret(Model, frozen=True, kw_only=True):
    """Credentials for BMCs: keys username and password. Cluster-scoped, otherwise like a Secret."""

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
    """True forbids any change of the data."""
    data: Annotated[dict[str, bytes], Schema(_FEW)] = {}
    """Values in base64."""
    string_data: Annotated[dict[str, str], Schema(_FEW)] = {}
    """Values in plain text, for writing; folded into data and removed by the controller."""
    type: str = ""
    """Kind of credentials, for programs."""
    status: "BMCSecretStatus | None" = None

    def __repr__(self) -> str:
        return f"BMCSecret({self.metadata.name}, keys={sorted({*self.data, *self.string_data})})"


class BMCSecretStatus(Model, frozen=True, kw_only=True):
    """Whether the credentials are complete."""

    state: Annotated[str, Choice("", "Ready", "Error")] = ""
    """Ready or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    conditions: Conditions = ()
    """Ready says whether user name and password are there."""
