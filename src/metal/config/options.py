"""The options. The docstring under each says what it means, its unit, and why the default is what it is."""

from dataclasses import dataclass, field
from pathlib import Path

from metal.api.kinds import BOOT_GROUP, METAL_GROUP
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.dns_template import load as load_template
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.maintenance.settings import MaintenanceSettings
from metal.controllers.server.settings import ServerSettings

_SERVER = ServerSettings()
_BMC = BMCSettings()


@dataclass(frozen=True)
class Listen:
    """Where the control plane listens, as address:port. Loopback unless told otherwise."""

    api: str = "127.0.0.1:8443"
    """Embedded Kubernetes API (TLS). Not used with a cluster's own API."""
    boot: str = "127.0.0.1:8082"
    """Boot server: iPXE scripts, images and Ignition. Real machines must reach it, so set another address."""
    registry: str = "127.0.0.1:10000"
    """Registry that metalprobe reports to. Machines must reach it."""
    events: str = ""
    """Receiver of BMCs' events, such as 0.0.0.0:10001. BMCs must reach it; empty subscribes to no events."""
    metrics: str = "127.0.0.1:8080"
    """Prometheus metrics and the probes /healthz and /readyz; empty switches them off."""


@dataclass(frozen=True)
class Advertise:
    """How machines reach the control plane, where that differs from what it listens on."""

    boot: str = ""
    """Base URL of the boot server, such as http://192.0.2.1:8082; empty means http:// and listen.boot."""
    registry: str = ""
    """Base URL of the registry; empty means http:// and listen.registry."""
    events: str = ""
    """Base URL of the event receiver; empty means http:// and listen.events. Some BMCs take none but https."""


@dataclass(frozen=True)
class BMCOptions:
    """How BMCs are spoken to where they do not say otherwise."""

    scheme: str = "https"
    """https or http. http shows passwords to the network, so it must be asked for."""
    verify: bool = True
    """Whether a BMC's certificate must be trusted; false accepts any, so it must be asked for."""
    ca_file: str = ""
    """File of certificates (PEM) that sign BMCs' certificates, beside the system's."""
    check_interval: float = 60.0
    """How often each BMC is looked at, in seconds; a BMC that died is noticed this late."""
    trust_on_first_use: bool = False
    """Whether a BMC that says nothing of tls is held to the first certificate it shows, instead of to an authority."""
    auto_reset: bool = False
    """Whether a BMC that has failed for resetAfter is restarted without being asked, by Redfish or else by SSH."""
    reset_after: float = _BMC.reset_after
    """How long it must have failed before that; no second restart follows within an hour."""
    event_slowdown: int = int(_BMC.event_slowdown)
    """How many times less often BMCs and idle servers are looked at while a BMC's events arrive; 1 changes nothing."""


@dataclass(frozen=True)
class Registries:
    """Where operating system images come from."""

    insecure: tuple[str, ...] = ()
    """Registries (host or host:port) that are spoken to over plain http; all others need https."""
    allowed: tuple[str, ...] = ("ghcr.io",)
    """Registries that images may come from, as host or host:port; the insecure ones are allowed too."""
    cache_size: int = 20 << 30
    """Most bytes that the image cache keeps; images in use are never removed. 20 GiB hold some hundred images."""


@dataclass(frozen=True)
class Sanitization:
    """What becomes of the data that tenants leave on servers' drives."""

    policy: str = _SERVER.sanitization_policy
    """None, Clear or Purge (NIST SP 800-88), where neither the claim nor the server's label says."""
    opt_out: bool = _SERVER.sanitization_opt_out
    """Whether a claim may ask for less than the server's label or this policy do; false keeps claims from None, too."""
    timeout: float = _SERVER.sanitization_timeout
    """How long a sanitization may take besides the time for its largest drive; starting takes minutes."""
    rate: int = _SERVER.sanitization_rate
    """Bytes a second, at which the largest drive must be erased; hard disks write three times that."""
    firmware: str = _SERVER.sanitization_firmware
    """None, ClearTPM or ResetBIOS: what of the firmware is put back after a tenant, where the BMC can do it."""
    firmware_required: bool = _SERVER.sanitization_firmware_required
    """Whether a server whose firmware was not put back is held back, as one with a drive that is not erased."""
    key_secret: str = _SERVER.signing_key
    """Secret in `namespace` with the Ed25519 key that signs evidence, made where it is missing. Its public half is in
    the ConfigMap of this name with -public at its end."""


@dataclass(frozen=True)
class Timeouts:
    """Deadlines and intervals of a server's life, in seconds (or with a unit: 90s, 30m, 2h)."""

    resync: float = _SERVER.resync
    """How often an idle server is looked at; power changed by hand is noticed this late."""
    graceful: float = _SERVER.graceful_timeout
    """How long an operating system may take to shut down before power is cut."""
    power: float = _SERVER.power_timeout
    """How long any power change may take before the server goes to Error."""
    boot_config: float = _SERVER.boot_config_timeout
    """How long the boot server may take to have an image ready; a first download can be large."""
    discovery: float = _SERVER.discovery_timeout
    """How long a machine may take from power-on to the probe's report; large servers train memory for minutes."""
    claim_boot: float = _SERVER.claim_boot_timeout
    """How long a machine may take from power-on to fetching the tenant's Ignition."""
    race_window: float = _SERVER.race_window
    """How long a boot is not believed while no DHCP lease of the machine is known, lest another party was served: the
    time machines need from power-on to asking for their script. No wait where the DHCP server reports hosts' leases."""
    boot_retry: float = _SERVER.boot_retry
    """Pause before the second network boot; it doubles with each failure."""
    bmc: float = _SERVER.bmc_timeout
    """How long a BMC may be unreachable before its server goes to Error."""
    maintenance: float = MaintenanceSettings.overdue
    """How long a maintenance may hold a server before its condition Overdue says so; it ends when it is deleted."""


@dataclass(frozen=True)
class Election:
    """Which of several managers acts, by a Lease in `namespace` (`metalctl manager --leader-elect`).

    leaseDuration > renewDeadline > retryPeriod. What is between the first two is what a leader that is cut off from the
    API has for stopping: requests to BMCs that are under way end, or are given up.
    """

    lease: str = "metal-operator"
    """Name of the Lease; managers of the same fleet share it."""
    lease_duration: float = 10.0
    """How long a leader that died silently keeps the others waiting; whole seconds. With this the next one acts after
    10 to 12 s, and an API server that restarts within 5 s moves nothing."""
    renew_deadline: float = 7.0
    """How long a leader acts after its last renewal; 3 s less than the others wait, for slow requests, odd clocks."""
    retry_period: float = 1.5
    """How often the leader renews and the others look: four renewals may fail before the leader stops."""
    drain: float = 1.5
    """How long work in progress may go on after SIGTERM before the Lease is given back; the next leader waits."""


@dataclass(frozen=True)
class Config:
    """Everything that can be set."""

    api_group: str = METAL_GROUP
    """API group of the kinds; a distribution may use another one, such as metal.openkcm.dev."""
    boot_group: str = BOOT_GROUP
    """API group of IPXEBootConfig."""
    namespace: str = "metal-system"
    """Namespace of what belongs to the control plane itself: discovery boots, inventories."""
    mac_prefixes_file: str = ""
    """YAML file that says which MAC prefixes are BMCs, with their factory credentials; empty finds no BMCs by DHCP."""
    dns_record_template: str = ""
    """YAML file with the object that each BMC gets for its DNS name, with fields such as `{{ .Hostname }}` and
    `{{ .IP }}`; empty writes none."""
    probe_image: str = ""
    """OCI reference of the operating system image for discovery; without it servers wait in Discovery."""
    boot_attempts: int = _SERVER.boot_attempts
    """How many network boots may fail in a row before the server goes to Error."""
    listen: Listen = field(default_factory=Listen)
    """Where the control plane listens."""
    advertise: Advertise = field(default_factory=Advertise)
    """How machines reach it."""
    bmc: BMCOptions = field(default_factory=BMCOptions)
    """How BMCs are spoken to."""
    registries: Registries = field(default_factory=Registries)
    """Where images come from."""
    sanitization: Sanitization = field(default_factory=Sanitization)
    """What becomes of tenants' data."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    """Deadlines and intervals."""
    election: Election = field(default_factory=Election)
    """Which of several managers acts."""

    @property
    def boot_url(self) -> str:
        """Base URL of the boot server as machines see it, without a slash at its end."""
        return (self.advertise.boot or f"http://{self.listen.boot}").rstrip("/")

    @property
    def registry_url(self) -> str:
        """Base URL of the registry as machines see it, without a slash at its end."""
        return (self.advertise.registry or f"http://{self.listen.registry}").rstrip("/")

    @property
    def event_url(self) -> str:
        """Base URL of the event receiver as BMCs see it, without a slash at its end; empty where there is none."""
        listening = f"http://{self.listen.events}" if self.listen.events else ""
        return (self.advertise.events or listening).rstrip("/") if listening else ""

    def dns_template(self) -> Template | None:
        """The template of DNS records, read from its file. Raises yamltree.Invalid with file, line and fix."""
        return load_template(Path(self.dns_record_template)) if self.dns_record_template else None

    def bmc_settings(self) -> BMCSettings:
        """What the BMC reconciler needs of all this."""
        b = self.bmc
        return BMCSettings(
            namespace=self.namespace, interval=b.check_interval, auto_reset=b.auto_reset, reset_after=b.reset_after,
            event_url=self.event_url, event_slowdown=float(b.event_slowdown),
        )  # fmt: skip

    def server_settings(self, probe_bundle: bytes) -> ServerSettings:
        """What the Server reconciler needs of all this."""
        t, s = self.timeouts, self.sanitization
        return ServerSettings(
            namespace=self.namespace, probe_image=self.probe_image, registry_url=self.registry_url,
            probe_bundle=probe_bundle, resync=t.resync, graceful_timeout=t.graceful, power_timeout=t.power,
            boot_config_timeout=t.boot_config, discovery_timeout=t.discovery, claim_boot_timeout=t.claim_boot,
            race_window=t.race_window, boot_attempts=self.boot_attempts, boot_retry=t.boot_retry, bmc_timeout=t.bmc,
            sanitization_policy=s.policy, sanitization_opt_out=s.opt_out, sanitization_timeout=s.timeout,
            sanitization_rate=s.rate, sanitization_firmware=s.firmware,
            sanitization_firmware_required=s.firmware_required, signing_key=s.key_secret,
            event_slowdown=float(self.bmc.event_slowdown),
        )  # fmt: skip
