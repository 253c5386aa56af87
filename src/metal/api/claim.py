"""ServerClaim requests a server; ServerBootConfiguration requests a network boot of a server."""

from datetime import datetime
from typing import Annotated, ClassVar

from metal.api.boot_window import Trust
from metal.api.common import LabelSelector, LocalRef, Toleration
from metal.api.markers import IMMUTABLE, Choice, Range, Required, Rule, TypeSchema, kept
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.sanitization import Policy


class ServerClaimSpec(Model, frozen=True, kw_only=True):
    """Desired state of a claim: which server to bind, and what to boot on it."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule("!has(oldSelf.serverRef) || has(self.serverRef)", "serverRef is required once set"),
            Rule("!has(oldSelf.serverSelector) || has(self.serverSelector)", "serverSelector is required once set"),
            kept(
                "sanitizationPolicy",
                "sanitizationPolicy cannot be removed: set it to the empty string for the policy of the server",
                unless="oldSelf.sanitizationPolicy == ''",
            ),
            kept(
                "bootGeneration",
                "bootGeneration cannot be removed: set it to 0 to withdraw the requests for network boots",
                unless="oldSelf.bootGeneration == 0",
            ),
            kept(
                "minimumBootTrust",
                "minimumBootTrust cannot be removed: set it to the empty string for the minimum of the site",
                unless="oldSelf.minimumBootTrust == ''",
            ),
            Rule(
                "!has(oldSelf.serverRef) || (has(self.minimumBootTrust) ? self.minimumBootTrust : '') == "
                "(has(oldSelf.minimumBootTrust) ? oldSelf.minimumBootTrust : '')",
                "minimumBootTrust is immutable once serverRef is set",
            ),
        )
    )

    power: Annotated[str, Choice("", "On", "Off"), Required()] = ""
    """Desired power state of the claimed server: On or Off. The server is booted over the network for the first time
    when the value is On. Quote the value in YAML, where an unquoted On is a boolean."""
    server_ref: Annotated[LocalRef | None, Rule(IMMUTABLE, "serverRef is immutable")] = None
    """Server to bind. If empty, the controller selects an available server and sets this field. Immutable once set."""
    server_selector: Annotated[LabelSelector | None, Rule(IMMUTABLE, "serverSelector is immutable")] = None
    """Selects servers by their labels. If serverRef is also set, its server must match. Without serverRef and
    serverSelector, any available server is bound whose taints the claim tolerates. Immutable once set."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the namespace of the claim. Its key ignition holds the Ignition configuration in JSON. A change of the
    reference after the first boot takes effect when bootGeneration is increased."""
    user_data_ref: LocalRef | None = None
    """Accepted for compatibility. No controller reads the Secret; use ignitionSecretRef."""
    image: Annotated[str, Required()] = ""
    """OCI reference of the operating system image to boot, with a tag or a digest. A change after the first boot takes
    effect when bootGeneration is increased."""
    boot_generation: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Increase the value to boot the image and the Ignition over the network once more. After the first boot, no other
    field of the claim causes a network boot. Decreasing the value withdraws a request that has not succeeded yet.
    Values up to status.bootGeneration have no effect. Defaults to 0. A value cannot be removed, only set to 0."""
    minimum_boot_trust: Annotated[str, Choice("", *Trust)] = ""
    """How far it must be known that this server itself, and no other machine on its network, is booted, before it is
    served the image or the Ignition: OutOfBand (the token goes through its BMC), Lease (DHCP leased the address to a
    MAC address that the BMC shows) or FirstRequest. It can only raise boot.minimumTrust of the manager's configuration.
    Immutable once serverRef is set, and it cannot be removed, only set to the empty string."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of servers that the claim tolerates. A server is bound only if each of its NoBind taints is tolerated."""
    sanitization_policy: Annotated[str, Choice("", *Policy)] = ""
    """How the drives of the server are sanitized after the claim is deleted: None, Clear or Purge (categories of NIST
    SP 800-88). Defaults to the label metal.ironcore.dev/sanitization-policy of the server, or else to
    sanitization.policy in the manager's configuration. A weaker policy than the default is not honored
    (condition SanitizationPolicyHonored), unless sanitization.optOut is true in the manager's configuration and the
    server has no such label. The field cannot be removed, only set to the empty string; once the server has booted for
    the claim, a weaker value has no effect."""


class ServerClaimStatus(Model, frozen=True, kw_only=True):
    """Observed state of a claim."""

    phase: Annotated[str, Choice("", "Bound", "Unbound")] = ""
    """Phase of the claim: Bound (to the server in spec.serverRef) or Unbound."""
    since: datetime | None = None
    """Time at which the phase last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    boot_generation: int = 0
    """Highest spec.bootGeneration for which a network boot has succeeded."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the claim: Bound (a server is bound), Booted (the image has booted), Current (the server booted
    what the spec describes) and Ready (booted, and the power state is as desired)."""


class ServerClaim(Model, frozen=True, kw_only=True):
    """Requests a server, and boots an operating system image on it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerClaimSpec = ServerClaimSpec()
    status: ServerClaimStatus = ServerClaimStatus()


class ServerBootConfigurationSpec(Model, frozen=True, kw_only=True):
    """Desired network boot of a server."""

    server_ref: LocalRef
    """Server to boot."""
    image: str = ""
    """OCI reference of the image to boot, with a tag or a digest."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the same namespace. Its key ignition holds the Ignition configuration in JSON."""


class ServerBootConfigurationStatus(Model, frozen=True, kw_only=True):
    """Observed state of a boot configuration."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """State of the boot configuration: Pending, Ready (the boot server can serve it) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the boot configuration: ImageValidation (the image is verified and stored), IgnitionValidation (the
    Ignition is valid), IPXEScriptFetched and IgnitionDataFetched (the boot server has served them), and
    BootStateReceived (the machine reported that it has booted)."""


class ServerBootConfiguration(Model, frozen=True, kw_only=True):
    """Requests that the boot server prepares a network boot of a server."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerBootConfigurationSpec
    status: ServerBootConfigurationStatus = ServerBootConfigurationStatus()
