"""ServerClaim: a tenant's wish for a server, and ServerBootConfiguration: what it is to boot."""

from datetime import datetime

from metal.api.common import LabelSelector, LocalRef, Toleration
from metal.api.meta import Condition, Model, ObjectMeta


class ServerClaimSpec(Model, frozen=True, kw_only=True):
    """What the tenant wants."""

    power: str = ""
    """On or Off: power of the claimed server."""
    server_ref: LocalRef | None = None
    """The server itself; filled in once bound."""
    server_selector: LabelSelector | None = None
    """Labels that the server must have. Without serverRef and serverSelector any server fits."""
    ignition_secret_ref: LocalRef | None = None
    """Secret in the claim's namespace with the Ignition under key ignition."""
    user_data_ref: LocalRef | None = None
    """Secret of type metal.ironcore.dev/user-data in the claim's namespace."""
    image: str = ""
    """OCI reference of the operating system image."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that do not keep this claim away."""


class ServerClaimStatus(Model, frozen=True, kw_only=True):
    """What became of the wish."""

    phase: str = ""
    """Bound or Unbound."""
    since: datetime | None = None
    """When phase last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: tuple[Condition, ...] = ()
    """Bound, Booted and Ready."""


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

    state: str = ""
    """Pending, Ready or Error."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: tuple[Condition, ...] = ()
    """ImageValidation, IgnitionValidation, IPXEScriptFetched, IgnitionDataFetched, BootStateReceived."""


class ServerBootConfiguration(Model, frozen=True, kw_only=True):
    """Asks the boot server to prepare one server's network boot."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServerBootConfigurationSpec
    status: ServerBootConfigurationStatus = ServerBootConfigurationStatus()
