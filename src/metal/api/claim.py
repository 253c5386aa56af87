"""ServerClaim: a tenant's wish for a server, and ServerBootConfiguration: what it is to boot."""

from datetime import datetime
from typing import Annotated, ClassVar

from metal.api.common import LabelSelector, LocalRef, Toleration
from metal.api.markers import IMMUTABLE, Choice, Range, Required, Rule, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta
from metal.api.sanitization import Policy


class ServerClaimSpec(Model, frozen=True, kw_only=True):
    """What the tenant wants."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule("!has(oldSelf.serverRef) || has(self.serverRef)", "serverRef is required once set"),
            Rule("!has(oldSelf.serverSelector) || has(self.serverSelector)", "serverSelector is required once set"),
        )
    )

    power: Annotated[str, Choice("", "On", "Off"), Required()] = ""
    """On or Off: power of the claimed server. Quote it in YAML: a bare On is a truth value there."""
    server_ref: Annotated[LocalRef | None, Rule(IMMUTABLE, "serverRef is immutable")] = None
    """The server itself; filled in once bound."""
    server_selector: Annotated[LabelSelector | None, Rule(IMMUTABLE, "serverSelector is immutable")] = None
    """Labels that the server must have. Without serverRef and serverSelector any server fits."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the claim's namespace with the Ignition under key ignition."""
    user_data_ref: LocalRef | None = None
    """Secret of type metal.ironcore.dev/user-data in the claim's namespace."""
    image: Annotated[str, Required()] = ""
    """OCI reference of the operating system image."""
    boot_generation: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Raise it to have the machine boot image and Ignition over the network once more; nothing else makes it do that.
    Lowering it withdraws what was asked for and has not succeeded yet. A value that was answered is not answered again,
    nor is a lower one."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that do not keep this claim away."""
    sanitization_policy: Annotated[str, Choice("", *Policy)] = ""
    """What becomes of the data on the server's drives when the claim is gone: None, Clear or Purge. Empty leaves it to
    the server's label and the operator's setting, which may also not allow less than they ask for."""


class ServerClaimStatus(Model, frozen=True, kw_only=True):
    """What became of the wish."""

    phase: Annotated[str, Choice("", "Bound", "Unbound")] = ""
    """Bound or Unbound."""
    since: datetime | None = None
    """When phase last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    boot_generation: int = 0
    """Highest spec.bootGeneration that a network boot has answered."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Bound, Booted, Current and Ready."""


class ServerClaim(Model, frozen=True, kw_only=True):
    """A tenant's wish for a server."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerClaimSpec = ServerClaimSpec()
    status: ServerClaimStatus = ServerClaimStatus()


class ServerBootConfigurationSpec(Model, frozen=True, kw_only=True):
    """What is to be booted where."""

    server_ref: LocalRef
    """Server that boots."""
    image: str = ""
    """OCI reference of the image."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the same namespace with the Ignition under key ignition."""


class ServerBootConfigurationStatus(Model, frozen=True, kw_only=True):
    """Whether everything is ready to be served."""

    state: Annotated[str, Choice("", "Pending", "Ready", "Error")] = ""
    """Pending, Ready or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """ImageValidation, IgnitionValidation, IPXEScriptFetched, IgnitionDataFetched, BootStateReceived."""


class ServerBootConfiguration(Model, frozen=True, kw_only=True):
    """Asks the boot server to prepare one server's network boot."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerBootConfigurationSpec
    status: ServerBootConfigurationStatus = ServerBootConfigurationStatus()
