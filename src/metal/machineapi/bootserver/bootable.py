"""Reads from the API what a machine boots: the IPXEBootConfig of a boot configuration, and its Ignition."""

from dataclasses import dataclass, field

from metal.api.boot_window import BootWindow
from metal.api.core import SECRET, Secret
from metal.api.ipxe import IPXEBootConfig
from metal.api.kinds import Kinds
from metal.api.names import REPORT_TOKEN_FILE
from metal.boot import ignition
from metal.boot.butane import FORMATS, Butane
from metal.boot.errors import IgnitionError
from metal.boot.plan import Blob, Plan
from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.withheld import withheld
from metal.kube.meta.permissions import Permission, Where

COMMAND_LINE = "command-line"
"""Annotation key (under the boot group) with the kernel arguments of the image's config."""
GENERATION = "generation"
"""Annotation key with the generation of the ServerBootConfiguration for which the image's digest was pinned."""

ARCHITECTURE = "architecture"
"""Annotation key with the architecture for which it was pinned. Former versions pinned for amd64 and had none."""


class NotReady(Exception):
    """A required object is missing or not ready; a later request may succeed. str() has no secrets."""


@dataclass(frozen=True)
class Bootable:
    """A ready IPXEBootConfig."""

    config: IPXEBootConfig
    plan: Plan


@dataclass(frozen=True)
class UserData:
    """The Ignition that a Secret amounts to."""

    content: bytes = field(repr=False)
    version: str
    """Spec version of the config."""
    warnings: str = ""
    """What butane warned about; without secrets."""


class Bootables:
    """Reads the objects that a boot window refers to, uncached."""

    def __init__(self, client: Client, kinds: Kinds, butane: Butane) -> None:
        self._client, self._kinds, self._butane = client, kinds, butane

    async def of(self, window: BootWindow) -> Bootable:
        """The IPXEBootConfig and plan of a boot window. Raises NotReady, ApiError."""
        ref = window.config_ref
        try:
            config = await self._client.get(self._kinds.ipxe, ref.name, ref.namespace)
        except NotFound:
            raise NotReady(f"IPXEBootConfig {ref.namespace}/{ref.name} does not exist yet") from None
        owners = {owner.uid for owner in config.metadata.owner_references if owner.controller}
        if window.config_uid and window.config_uid not in owners:
            raise NotReady(f"IPXEBootConfig {ref.namespace}/{ref.name} belongs to another ServerBootConfiguration")
        if config.status.state != "Ready":
            raise NotReady(f"IPXEBootConfig {ref.namespace}/{ref.name} is {config.status.state or 'Pending'}")
        try:
            return Bootable(config, plan_of(config, self._kinds))
        except ValueError as exc:
            raise NotReady(f"IPXEBootConfig {ref.namespace}/{ref.name}: {exc}") from None

    async def ignition(self, config: IPXEBootConfig, *, token: str = "") -> bytes:
        """The Ignition of a config; an empty one where none is referenced. Raises NotReady, ApiError.

        `token`: what a probe needs for its report is added as a file.
        """
        ref = config.spec.ignition_secret_ref
        if ref is None:
            return _with_token(ignition.EMPTY, token)
        try:
            with withheld():
                secret = await self._client.get(SECRET, ref.name, config.metadata.namespace)
            return _with_token((await ignition_of(secret, self._butane)).content, token)
        except NotFound:
            raise NotReady(f"the Secret {config.metadata.namespace}/{ref.name} does not exist") from None
        except IgnitionError as exc:
            raise NotReady(f"the Secret {config.metadata.namespace}/{ref.name} is not valid: {exc}") from None


def plan_of(config: IPXEBootConfig, kinds: Kinds) -> Plan:
    """The plan in an IPXEBootConfig. Raises ValueError when its URLs were not created by this operator."""
    spec = config.spec
    return Plan(
        kernel=Blob.from_url(spec.kernel_url),
        initramfs=Blob.from_url(spec.initrd_url),
        squashfs=Blob.from_url(spec.squashfs_url) if spec.squashfs_url else None,
        command_line=config.metadata.annotations.get(f"{kinds.boot_group}/{COMMAND_LINE}", ""),
        ignition=spec.ignition_secret_ref is not None,
    )


def _with_token(content: bytes, token: str) -> bytes:
    return ignition.add_file(content, REPORT_TOKEN_FILE, token.encode(), mode=0o600) if token else content


async def ignition_of(secret: Secret, butane: Butane) -> UserData:
    """The Ignition in a Secret: converted if it is Butane, and validated as far as it can be. Raises IgnitionError."""
    kind = secret.data.get("format", b"").strip().decode(errors="replace")
    raw = secret.data.get("ignition")
    if raw is None:
        raise IgnitionError("$", "the Secret has no key named ignition")
    if kind in FORMATS:
        converted = await butane.convert(raw)
        return UserData(converted.config, ignition.accept(converted.config), converted.warnings)
    if kind not in ("", "ignition"):
        raise IgnitionError("$", f"format {kind[:20]!r} is not known: write ignition, {' or '.join(FORMATS)}")
    return UserData(raw, ignition.accept(raw))


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """The permissions of the boot server."""
    return (
        Permission(kinds.ipxe, ("get",), "serves a machine its boot configuration"),
        Permission(SECRET, ("get",), "serves a tenant's Ignition to its machine", where=Where.TENANTS),
        Permission(SECRET, ("get",), "serves the Ignition of the discovery boot", where=Where.HOME),
    )
