"""ServerClaim requests a server; ServerBootConfiguration requests a network boot of a server."""

from datetime import datetime
from typing import Annotated, ClassVar

from metal.api.common import LabelSelector, LocalRef, Toleration
from metal.api.markers import IMMUTABLE, Choice, Range, Required, Rule, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.sanitization import Policy


class ServerClaimSpec(Model, frozen=True, kw_only=True):
    """Desired state of a claim: which server to bind, and what to boot on it."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule("!has(oldSelf.serverRef) || has(self.serverRef)", "serverRef is required once set"),
            Rule("!has(oldSelf.serverSelector) || has(self.serverSelector)", "serverSelector is required once set"),
        )
    )

    power: Annotated[str, Choice("", "On", "Off"), Required()] = ""
    """Desired power state of the claimed server: On or Off. Quote the value in YAML, where a bare On is a boolean."""
    server_ref: Annotated[LocalRef | None, Rule(IMMUTABLE, "serverRef is immutable")] = None
    """Server to bind. The controller sets it when it binds a server."""
    server_selector: Annotated[LabelSelector | None, Rule(IMMUTABLE, "serverSelector is immutable")] = None
    """Selects servers by their labels. A claim without serverRef and serverSelector can bind any server."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the namespace of the claim. Its key ignition holds the Ignition configuration."""
    user_data_ref: LocalRef | None = None
    """Secret of type metal.ironcore.dev/user-data in the namespace of the claim."""
    image: Annotated[str, Required()] = ""
    """OCI reference of the operating system image to boot."""
    boot_generation: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Increase the value to boot the image and the Ignition over the network once more. Nothing else causes another
    network boot of a claim. Decreasing it withdraws a request that has not succeeded yet. Values up to
    status.bootGeneration have no effect."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of servers that the claim tolerates."""
    sanitization_policy: Annotated[str, Choice("", *Policy)] = ""
    """How the drives of the server are sanitized after the claim is deleted: None, Clear or Purge. Defaults to the
    policy in the label of the server, or else to the manager's configuration. The configuration can forbid a weaker
    policy than these."""


class ServerClaimStatus(Model, frozen=True, kw_only=True):
    """Observed state of a claim."""

    phase: Annotated[str, Choice("", "Bound", "Unbound")] = ""
    """Phase of the claim: Bound or Unbound."""
    since: datetime | None = None
    """Time at which the phase last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    boot_generation: int = 0
    """Highest spec.bootGeneration for which a network boot has succeeded."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the claim: Bound, Booted, Current and Ready."""


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
    """OCI reference of the image to boot."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the same namespace. Its key ignition holds the Ignition configuration."""


class ServerBootConfigurationStatus(Model, frozen=True, kw_only=True):
    """Observed state of a boot configuration."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """State of the boot configuration: Pending, Ready (the boot server can serve it) or Error."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """What the controller currently waits for. Empty when it waits for nothing."""
    observed_generation: int = 0
    """The metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Conditions of the boot configuration: ImageValidation, IgnitionValidation, IPXEScriptFetched, IgnitionDataFetched
    and BootStateReceived."""


class ServerBootConfiguration(Model, frozen=True, kw_only=True):
    """Requests that the boot server prepares a network boot of a server."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerBootConfigurationSpec
    status: ServerBootConfigurationStatus = ServerBootConfigurationStatus()
