"""The options. The docstring below each option has its meaning, its unit and the reason of its default."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from metal.api.kinds import BOOT_GROUP, METAL_GROUP
from metal.api.names import APPROVAL, BOUND_TO
from metal.boot import butane
from metal.boot.registry.settings import RegistryClientSettings, RegistryServer, SigningKeys
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.dns_template import load as load_template
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.server.settings import ServerSettings
from metal.controllers.shared.access.enrolment_policy import EnrolmentPolicy, plain
from metal.listener.limits import ConnectionLimits
from metal.machine import placeholders

_SERVER = ServerSettings()
_BMC = BMCSettings()
_CONNECTIONS = ConnectionLimits()


@dataclass(frozen=True)
class Listen:
    """Addresses on which the control plane listens, as address:port. The defaults are loopback addresses."""

    api: str = "127.0.0.1:8443"
    """Embedded Kubernetes API (TLS). Not used with the API server of a cluster."""
    boot: str = "127.0.0.1:8082"
    """Boot server: iPXE scripts, images and Ignition. Machines must be able to connect to it."""
    registry: str = "127.0.0.1:10000"
    """Registry that receives the reports of metalprobe. Machines must be able to connect to it."""
    events: str = ""
    """Receiver of BMC events, such as 0.0.0.0:10001. BMCs must be able to connect to it. Empty disables event
    subscriptions."""
    metrics: str = "127.0.0.1:8080"
    """Prometheus metrics and the probes /livez and /readyz. Empty disables them."""


@dataclass(frozen=True)
class Advertise:
    """Base URLs of the control plane for machines and clients elsewhere, if they differ from the listen addresses."""

    api: str = ""
    """Base URL of the embedded API, such as https://metal.site.example:8443. Its host is in the certificate of the API,
    beside the names and addresses of this machine, and its kubeconfig has the URL. Not used with a cluster's API."""
    boot: str = ""
    """Base URL of the boot server, such as http://192.0.2.1:8082. Defaults to http:// and listen.boot."""
    registry: str = ""
    """Base URL of the registry. Defaults to http:// and listen.registry."""
    events: str = ""
    """Base URL of the event receiver. Defaults to http:// and listen.events. Some BMCs accept only https."""


@dataclass(frozen=True)
class BMCOptions:
    """Connections to BMCs. The spec of a BMC takes precedence."""

    scheme: str = "https"
    """URL scheme: https or http. http sends passwords in plain text and is therefore not the default."""
    verify: bool = True
    """If true, the certificate of a BMC without spec.tls must be trusted. If false, the first one is pinned, as with
    trustOnFirstUse. Only spec.tls of a BMC, or its entry in the MAC prefix file, can accept any certificate."""
    ca_file: str = ""
    """File with certificate authorities (PEM) of BMCs, in addition to those of the system."""
    check_interval: float = 60.0
    """Interval of the health checks of each BMC, in seconds. It limits how late a failure is detected."""
    trust_on_first_use: bool = False
    """If true, the first certificate of a BMC without spec.tls is pinned, instead of verified with an authority."""
    workers: int = _BMC.workers
    """Number of BMCs, of servers and of endpoints that are reconciled at the same time. Most of the time is spent
    waiting for BMCs. A quarter of it is the limit of requests in flight to BMCs that do not answer."""
    auto_reset: bool = False
    """If true, a BMC that has failed for resetAfter is restarted automatically, with Redfish or else with SSH."""
    reset_after: float = _BMC.reset_after
    """Time that a BMC must have failed before its automatic restart. It is restarted at most once an hour."""
    event_slowdown: int = int(_BMC.event_slowdown)
    """Factor by which the polling of BMCs and idle servers is reduced while events of the BMC are received. 1 disables
    it."""


@dataclass(frozen=True)
class Enrolment:
    """Which BMCs are enrolled."""

    networks: tuple[str, ...] = ()
    """Networks (CIDR) in which BMCs may be. A BMC at another address is not contacted, and a condition says so. Empty
    allows any address. Set it to the management networks: the address of a BMC comes from DHCP or from its object."""
    approval: str = "Automatic"
    """Automatic: a BMC that a DHCP lease shows is enrolled. Manual: it waits in state PendingApproval, nothing is sent
    to its address, until `metalctl approve bmc/NAME`. BMCs that an administrator creates need no approval."""
    expected: tuple[str, ...] = ()
    """MAC addresses of BMCs, and serial numbers of BMCs or servers. If set, other BMCs wait for an approval. With
    Manual only MAC addresses count, since the serial number is read from the BMC."""


@dataclass(frozen=True)
class Registries:
    """Registries of operating system images."""

    insecure: tuple[str, ...] = ()
    """Registries (host or host:port) that are accessed over plain http. All others require https."""
    allowed: tuple[str, ...] = ("ghcr.io",)
    """Registries that images may come from, as host or host:port. The insecure ones are allowed too."""
    auth_file: str = ""
    """File with credentials of registries: a docker config JSON with the key auths. Read again when it changes. The
    longest key that an image begins with applies, as in containers-auth.json."""
    auth_secret: str = ""
    """Secret in `namespace` with credentials of registries, of type kubernetes.io/dockerconfigjson. Read again every
    30 seconds, and when a registry rejects credentials. Of equally long keys the one in authFile applies."""
    servers: tuple[RegistryServer, ...] = ()
    """Registries and mirrors with a certificate authority, mirrors, a token service or a limit of their own."""
    keys: tuple[SigningKeys, ...] = ()
    """Public keys that images must be signed with (cosign). Images without an entry need no signature."""
    namespace_quota: int = 0
    """Maximum size in bytes of the images in the cache that the claims and maintenances of one namespace need at the
    same time. Further ones wait (reason QuotaExceeded). 0 is no limit. It does not apply to the probe image."""
    cache_size: int = 20 << 30
    """Maximum size of the image cache in bytes. Images in use are never removed. 20 GiB hold some hundred images."""


@dataclass(frozen=True)
class BootOptions:
    """Network boots."""

    default_architecture: str = "amd64"
    """Architecture, as OCI names it, of servers whose inventory names none: amd64 or arm64. Images are chosen for it.
    The label metal.ironcore.dev/architecture of a Server takes precedence. Most BMCs name the architecture."""
    butane: str = butane.PROGRAM
    """Program that converts Butane (Secrets with `format: fcos` or `flatcar`) to Ignition: a path, or a name that is
    looked up in PATH. The manager's image has it. Empty converts nothing."""
    ipxe_folder: str = "/usr/lib/ipxe"
    """Folder with iPXE's EFI binaries, which the boot server sends to firmware that boots by HTTP: snponly.efi for
    x86-64 and arm64-efi/snponly.efi for arm64. The default is that of Debian's package ipxe. See docs/dhcp.md."""
    minimum_trust: str = _SERVER.minimum_trust
    """How far it must be known that the server itself is booted, before anything is served: OutOfBand (the token goes
    through its BMC), Lease (the DHCP server reports its leases, and the address was leased to a MAC address that the
    BMC shows) or FirstRequest (the first client that asks; another machine on the boot network can be taken for the
    server, and each boot waits for timeouts.raceWindow). A claim can require more."""


@dataclass(frozen=True)
class Identity:
    """What identifies a drive."""

    non_unique_drives: tuple[str, ...] = ()
    """Serial numbers, or models, of drives whose serial number other drives have, too, as some manufacturers report it.
    Only its World Wide Name identifies such a drive. Without one it is not recognized in another server: erase it
    before it is moved. Values such as QM00001 or 0123456789 need not be listed."""


@dataclass(frozen=True)
class Adoption:
    """Servers that another operator managed."""

    unknown_data: str = _SERVER.unknown_data
    """What happens to servers that another operator left Available, whose data is unknown: Erase, or Trust, which gives
    them away as they are."""
    wave: int = _SERVER.adoption_wave
    """How many of these servers are erased at the same time."""


@dataclass(frozen=True)
class Sanitization:
    """Sanitization of servers after a claim is deleted."""

    policy: str = _SERVER.sanitization_policy
    """Policy: None, Clear or Purge (NIST SP 800-88). The claim and the label of the server take precedence."""
    opt_out: bool = _SERVER.sanitization_opt_out
    """If true, a claim can request a weaker policy than this configuration, but not than the label of the server. A
    server that such a claim leaves without erasure gets the taint metal.ironcore.dev/data-not-erased, which only claims
    of the same namespace can tolerate."""
    timeout: float = _SERVER.sanitization_timeout
    """Maximum time of a sanitization, in addition to the time for the largest drive. Starting a server takes
    minutes."""
    rate: int = _SERVER.sanitization_rate
    """Bytes per second at which the largest drive must be erased. Hard disks write about three times faster."""
    firmware: str = _SERVER.sanitization_firmware
    """Reset of the firmware after a claim, if the BMC supports it: None, ClearTPM or ResetBIOS."""
    firmware_required: bool = _SERVER.sanitization_firmware_required
    """If true, a server whose firmware was not reset does not become Available, as with a drive that was not erased."""
    key_secret: str = _SERVER.signing_key
    """Secret in `namespace` with the Ed25519 key that signs evidence. It is created if it does not exist. The public
    key is in the ConfigMap with this name and the suffix -public."""


@dataclass(frozen=True)
class Timeouts:
    """Deadlines and intervals of the states of a server, in seconds (or with a unit: 90s, 30m, 2h)."""

    resync: float = _SERVER.resync
    """Interval at which an idle server is reconciled. It limits how late a manual power change is detected."""
    graceful: float = _SERVER.graceful_timeout
    """Maximum time for the shutdown of an operating system. Then power is cut."""
    power: float = _SERVER.power_timeout
    """Maximum time for a power change. Then the server enters Error."""
    boot_config: float = _SERVER.boot_config_timeout
    """Maximum time until the boot server has an image ready. The first download of an image can be large."""
    discovery: float = _SERVER.discovery_timeout
    """Maximum time from power-on to the report of the probe. Large servers train their memory for minutes."""
    claim_boot: float = _SERVER.claim_boot_timeout
    """Maximum time from power-on until the machine fetches the Ignition of the claim."""
    race_window: float = _SERVER.race_window
    """Time after which a boot of a machine without a known DHCP lease is accepted, because another client could have
    been served: the time that machines need from power-on to the request of their script. Not used if the DHCP server
    reports the leases of hosts."""
    boot_retry: float = _SERVER.boot_retry
    """Pause before the second network boot. It doubles with each failure."""
    bmc: float = _SERVER.bmc_timeout
    """Maximum time that a BMC may be unreachable. Then its server enters Error."""
    maintenance: float = MaintenanceSettings.overdue
    """Time after which a maintenance has the condition Overdue. A maintenance ends when it is deleted."""


@dataclass(frozen=True)
class Maintenance:
    """Maintenances of servers."""

    enforced_namespaces: tuple[str, ...] = ()
    """Namespaces whose ServerMaintenances may have the policy Enforced, which needs no approval of a claim's owner.
    Defaults to `namespace`. In any other namespace Enforced counts as OwnerApproval: the right to create maintenances
    there would otherwise suffice to boot an image on the machine of another tenant."""


@dataclass(frozen=True)
class Election:
    """Leader election of several managers, by a Lease in `namespace` (`metalctl manager --leader-elect`).

    leaseDuration > renewDeadline > retryPeriod. The difference of the first two is the time that a leader without
    connection to the API server has to stop: running requests to BMCs end or are cancelled.
    """

    lease: str = "metal-operator"
    """Name of the Lease. Managers of the same fleet share it."""
    lease_duration: float = 10.0
    """Time in whole seconds after which a silent leader is replaced. With this default the next manager acts after 10
    to 12 s, and a restart of the API server within 5 s has no effect."""
    renew_deadline: float = 7.0
    """Maximum time that a leader acts after its last renewal. 3 s shorter than leaseDuration, for slow requests and
    clock skew."""
    retry_period: float = 1.5
    """Interval at which the leader renews the Lease and the others check it. A leader stops after four failed
    renewals."""
    drain: float = 1.5
    """Maximum time of work in progress after SIGTERM, before the Lease is released."""


@dataclass(frozen=True)
class Limits:
    """Limits of each listener, which apply before a request is authenticated. docs/limits.md lists those that are not
    options."""

    connections: int = _CONNECTIONS.connections
    """Maximum number of open connections of each listener, and at most an eighth of the process' file descriptors. If
    it is reached, a connection without a request in progress is closed, of the address with the most of them."""
    connections_per_address: int = _CONNECTIONS.per_address
    """Maximum number of open connections of one IPv4 address or IPv6 /64 network, for each listener. Increase it where
    many machines or clients share an address (NAT, a load balancer)."""
    image_streams: int = 256
    """Maximum number of kernels and RAM disks that the boot server sends at the same time; 503 beyond that."""
    image_streams_per_address: int = 32
    """Maximum number of those that it sends to one address. One machine gets at most 4. Increase it with NAT."""


@dataclass(frozen=True)
class Config:
    """Options of the control plane."""

    api_group: str = METAL_GROUP
    """API group of the kinds. A distribution may use another one, such as metal.openkcm.dev."""
    boot_group: str = BOOT_GROUP
    """API group of IPXEBootConfig."""
    namespace: str = "metal-system"
    """Namespace of the objects of the control plane itself, such as boot configurations of the probe and reports."""
    mac_prefixes_file: str = ""
    """YAML file with the MAC prefixes of BMCs and their factory credentials. Empty disables the enrolment of BMCs by
    DHCP."""
    dns_record_template: str = ""
    """YAML file with the object that is created for the DNS name of each BMC, with fields such as `{{ .Hostname }}` and
    `{{ .IP }}`. Empty creates none."""
    probe_image: str = ""
    """OCI reference of the probe image, which servers boot in state Discovery and for sanitization. Without it
    servers wait in Discovery, and after timeouts.bootConfig in Error."""
    boot_attempts: int = _SERVER.boot_attempts
    """Maximum number of consecutive failed network boots. Then the server enters Error."""
    listen: Listen = field(default_factory=Listen)
    """Listen addresses."""
    advertise: Advertise = field(default_factory=Advertise)
    """Base URLs for machines."""
    bmc: BMCOptions = field(default_factory=BMCOptions)
    """Connections to BMCs."""
    enrolment: Enrolment = field(default_factory=Enrolment)
    """Which BMCs are enrolled."""
    registries: Registries = field(default_factory=Registries)
    """Registries of images."""
    boot: BootOptions = field(default_factory=BootOptions)
    """Network boots."""
    identity: Identity = field(default_factory=Identity)
    """Identity of drives."""
    adoption: Adoption = field(default_factory=Adoption)
    """Adoption of servers of another operator."""
    sanitization: Sanitization = field(default_factory=Sanitization)
    """Sanitization after a claim."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Deadlines and intervals."""
    maintenance: Maintenance = field(default_factory=Maintenance)
    """Maintenances of servers."""
    election: Election = field(default_factory=Election)
    """Leader election."""
    limits: Limits = field(default_factory=Limits)
    """Limits of the listeners."""

    @property
    def boot_url(self) -> str:
        """Base URL of the boot server for machines, without a trailing slash."""
        return (self.advertise.boot or f"http://{self.listen.boot}").rstrip("/")

    @property
    def registry_url(self) -> str:
        """Base URL of the registry for machines, without a trailing slash."""
        return (self.advertise.registry or f"http://{self.listen.registry}").rstrip("/")

    @property
    def event_url(self) -> str:
        """Base URL of the event receiver for BMCs, without a trailing slash; empty without a receiver."""
        listening = f"http://{self.listen.events}" if self.listen.events else ""
        return (self.advertise.events or listening).rstrip("/") if listening else ""

    def connection_limits(self) -> ConnectionLimits:
        """Return the limits of connections."""
        return ConnectionLimits(connections=self.limits.connections, per_address=self.limits.connections_per_address)

    def dns_template(self) -> Template | None:
        """Read the template of DNS records. Raises yamltree.Invalid with file, line and fix."""
        return load_template(Path(self.dns_record_template)) if self.dns_record_template else None

    def enrolment_policy(self) -> EnrolmentPolicy:
        """Return where BMCs may be, and which need an approval."""
        e = self.enrolment
        return EnrolmentPolicy(
            networks=tuple(map(ipaddress.ip_network, e.networks)), manual=e.approval == "Manual",
            expected=frozenset(map(plain, e.expected)), annotation=f"{self.api_group}/{APPROVAL}",
            bound_to=f"{self.api_group}/{BOUND_TO}",
        )  # fmt: skip

    def bmc_settings(self) -> BMCSettings:
        """Return the settings of the BMC reconciler."""
        b = self.bmc
        return BMCSettings(
            namespace=self.namespace, interval=b.check_interval, workers=b.workers, auto_reset=b.auto_reset,
            reset_after=b.reset_after, event_url=self.event_url, event_slowdown=float(b.event_slowdown),
        )  # fmt: skip

    def registry_settings(self) -> RegistryClientSettings:
        """Return how registries are accessed."""
        r = self.registries
        return RegistryClientSettings(allowed=r.allowed, insecure=r.insecure, servers=r.servers, keys=r.keys)

    @property
    def silent_budget(self) -> int:
        """Number of requests in flight to BMCs that do not answer: the others keep three quarters of the workers."""
        return max(1, self.bmc.workers // 4)

    def endpoint_settings(self) -> EndpointSettings:
        """Return the settings of the Endpoint reconciler."""
        return EndpointSettings(workers=self.bmc.workers)

    def maintenance_settings(self) -> MaintenanceSettings:
        """Return the settings of the ServerMaintenance reconciler."""
        allowed = self.maintenance.enforced_namespaces or (self.namespace,)
        return MaintenanceSettings(enforced_namespaces=allowed, overdue=self.timeouts.maintenance)

    def server_settings(self, probe_bundle: bytes) -> ServerSettings:
        """Return the settings of the Server reconciler."""
        t, s = self.timeouts, self.sanitization
        return ServerSettings(
            namespace=self.namespace, probe_image=self.probe_image, registry_url=self.registry_url,
            probe_bundle=probe_bundle, resync=t.resync, graceful_timeout=t.graceful, power_timeout=t.power,
            boot_config_timeout=t.boot_config, discovery_timeout=t.discovery, claim_boot_timeout=t.claim_boot,
            race_window=t.race_window, boot_attempts=self.boot_attempts, boot_retry=t.boot_retry, bmc_timeout=t.bmc,
            minimum_trust=self.boot.minimum_trust,
            non_unique_drives=frozenset(map(placeholders.plain, self.identity.non_unique_drives)),
            unknown_data=self.adoption.unknown_data, adoption_wave=self.adoption.wave,
            sanitization_policy=s.policy, sanitization_opt_out=s.opt_out, sanitization_timeout=s.timeout,
            sanitization_rate=s.rate, sanitization_firmware=s.firmware,
            sanitization_firmware_required=s.firmware_required, signing_key=s.key_secret,
            event_slowdown=float(self.bmc.event_slowdown),
        )  # fmt: skip
