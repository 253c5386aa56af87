"""One pass over one ServerBootConfiguration: resolves the image, validates the Ignition, writes the IPXEBootConfig.

Ready means that the boot server can serve every byte from its disk. The image reference is resolved once for each
generation; the digest is pinned in the IPXEBootConfig, so a tag that moves changes nothing, and a new leader
continues with the same image. Downloads and registry requests run beside the workers: a pass reports their progress
as Pending and ends; their end queues the key again. A readiness that was reported is not taken back while a new
leader with an empty cache downloads the image, since a machine may be booting. Each aspect yields a `Finding`; the
worst one is the state.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from metal.api.claim import ServerBootConfiguration, ServerBootConfigurationStatus
from metal.api.core import SECRET
from metal.api.ipxe import IPXEBootConfig
from metal.api.kinds import Kinds
from metal.api.meta import Condition
from metal.api.server import Server
from metal.boot.errors import UNSIGNED, ImageError, ScriptError
from metal.boot.images import Image, Progress
from metal.boot.plan import Plan
from metal.controllers.bootconfig import ipxe_boot_config
from metal.controllers.bootconfig.findings import (
    ERROR,
    PENDING,
    READY,
    Finding,
    is_ready,
    requeue_after,
    status_of,
    with_condition,
)
from metal.controllers.bootconfig.lookups import Lookups
from metal.controllers.bootconfig.scope import ConfigScope, Deps, Memo, Wanted
from metal.controllers.bootconfig.user_data import UserDataCheck
from metal.controllers.shared.metrics import transitions
from metal.controllers.shared.reconciled import reporting
from metal.controllers.shared.scope import StatusScope
from metal.kube.client.errors import Conflict
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.ownership import is_controlled_by
from metal.kube.meta.permissions import APPLY, Permission, Where, blocks, disowns, follows
from metal.machine import architecture
from metal.machineapi.bootserver.bootable import plan_of

_IMAGE = "ImageValidation"
_MIB = 1024 * 1024


@dataclass
class BootConfigurationReconciler:
    """The only writer of a ServerBootConfiguration's readiness."""

    deps: Deps
    wake: Callable[[Key], None] = lambda _: None
    """Queues a key again; set when the reconciler is wired to its controller."""
    _memos: dict[Key, Memo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lookups = Lookups[Image]()
        self._user_data = UserDataCheck(self.deps.context.client, self.deps.settings)

    async def reconcile(self, key: Key) -> Result:
        """One pass for one boot configuration. Never waits for a registry."""
        config = self.deps.configs.get(key)
        if config is None or config.metadata.deletion_timestamp is not None:
            self._forget(key)
            return Done()
        context = self.deps.context
        empty = ServerBootConfigurationStatus()
        scope = StatusScope(context, context.kinds.boot_config, self.deps.configs, config, empty)
        findings = [_unfinished(config)]
        async with reporting(scope):
            try:
                await self._find(key, config, findings)
            finally:
                self._report(scope, findings)
            await self._report_child(config, scope.status)
        self._record_event(config, scope.status, findings)
        pause = requeue_after(findings)
        return Requeue(context.jitter(pause)) if pause else Done()

    async def _find(self, key: Key, config: ServerBootConfiguration, findings: list[Finding]) -> None:
        """Add what is found, aspect by aspect; the first finding stands until all of them were added."""
        name = config.spec.server_ref.name
        server = self.deps.servers.get(Key(name))
        if server is None or not server.uuid:
            findings[:] = [Finding(PENDING, "ServerMissing", f"the Server {name} to exist, with a systemUUID")]
            return
        found = self.deps.architecture(server)
        image, plan = await self._image(key, config, found)
        findings.append(image)
        memo = self._memos.setdefault(key, Memo())
        findings.append(await self._user_data.find(key, config, memo, partial(self.wake, key)))
        if plan is not None and all(finding.state == READY for finding in findings[1:]):
            findings.append(await self._apply(config, server, plan, found.name))
        del findings[0]

    async def _image(
        self, key: Key, config: ServerBootConfiguration, found: architecture.Found
    ) -> tuple[Finding, Plan | None]:
        memo, now = self._memos.setdefault(key, Memo()), asyncio.get_running_loop().time()
        wanted = (config.spec.image, config.metadata.generation, found.name)
        if memo.failed is not None and memo.failed[0] == wanted and now < memo.retry_at:
            return replace(memo.failed[1], recheck_after=memo.retry_at - now), None
        try:
            finding, plan = await self._fetch(key, config, found.name)
        except ImageError as exc:
            memo.failures, memo.resolved = memo.failures + 1, None
            failed = self._image_failed(exc, memo.failures)
            if exc.reason == "ArchitectureMissing":
                failed = replace(failed, message=f"{failed.message}. {self._way_out(config, found)}")
            memo.failed, memo.retry_at = (wanted, failed), now + failed.recheck_after
            return failed, None
        if finding.state == READY:
            memo.failures, memo.failed = 0, None
        return finding, plan

    async def _fetch(self, key: Key, config: ServerBootConfiguration, architecture: str) -> tuple[Finding, Plan | None]:
        """The state of the image, and its plan once all blobs are local. Raises ImageError."""
        pinned = self._pinned(key, config, architecture)
        if pinned is not None and self.deps.images.keep(str(key), [blob.digest for blob in pinned.blobs]):
            return _ready(pinned), pinned
        reference = str(pinned.kernel.image) if pinned is not None else config.spec.image
        if not reference:
            raise ImageError("ImageMissing", _image_missing(config))
        wanted = (reference, config.metadata.generation, architecture)
        image = await self._resolve(key, wanted, pinned=pinned is not None)
        if image is None:
            resolving = Finding(PENDING, "Resolving", f"the registry to answer for {reference}", _IMAGE)
            return self._pending_or_pinned(config, pinned, resolving)
        plan = image.plan(ignition=config.spec.ignition_secret_ref is not None)
        try:
            plan.check(self.deps.settings.base_url)
        except ScriptError as exc:
            raise ImageError("NotBootable", str(exc)) from None
        progress = self.deps.images.prefetch(str(key), image, partial(self.wake, key))
        if progress.failure is not None:
            raise progress.failure
        return (
            (_ready(plan), plan)
            if progress.complete
            else self._pending_or_pinned(config, pinned, self._downloading(progress))
        )

    def _pending_or_pinned(
        self, config: ServerBootConfiguration, pinned: Plan | None, finding: Finding
    ) -> tuple[Finding, Plan | None]:
        """The finding; or Ready as before, if this generation is: a machine may be booting the pinned image."""
        if pinned is None or not is_ready(config):
            return finding, None
        return replace(_ready(pinned), recheck_after=finding.recheck_after), pinned

    async def _resolve(self, key: Key, wanted: Wanted, *, pinned: bool) -> Image | None:
        memo, (reference, _, architecture) = self._memos.setdefault(key, Memo()), wanted
        if memo.resolved is not None and memo.resolved[0] == wanted:
            return memo.resolved[1]
        work = partial(self.deps.images.resolve, reference, architecture, pinned=pinned)
        image = await self._lookups.start_or_join(str(key), (wanted, pinned), work, partial(self.wake, key))
        memo.resolved = None if image is None else (wanted, image)
        return image

    def _pinned(self, key: Key, config: ServerBootConfiguration, architecture: str) -> Plan | None:
        found = self.deps.children.get(key)
        if found is None or not ipxe_boot_config.pins(found, config, self.deps.context.kinds, architecture):
            return None
        try:
            return plan_of(found, self.deps.context.kinds)
        except ValueError:  # it was edited: resolve the image and apply it again
            return None

    def _downloading(self, progress: Progress) -> Finding:
        message = f"downloading {progress.done // _MIB} of {-(-progress.total // _MIB)} MiB"
        return Finding(PENDING, "Downloading", message, _IMAGE, self.deps.settings.progress_poll)

    def _image_failed(self, exc: ImageError, failures: int) -> Finding:
        settings = self.deps.settings
        if exc.transient:
            pause = min(settings.retry * 2 ** min(failures - 1, 16), settings.retry_slow)
            return Finding(PENDING, exc.reason, str(exc), _IMAGE, pause)
        if exc.reason in UNSIGNED:
            return Finding(ERROR, exc.reason, str(exc), _IMAGE, settings.retry_slow)
        return Finding(ERROR, "ValidationFailed", f"{exc.reason}: {exc}", _IMAGE, settings.retry_slow)

    def _way_out(self, config: ServerBootConfiguration, found: architecture.Found) -> str:
        name, label = config.spec.server_ref.name, self.deps.architecture_label
        why = " by boot.defaultArchitecture, since its inventory names none" if found.assumed else ""
        return (
            f"The architecture of Server {name} is {found.name}{why}: use an image for it, or correct the label {label}"
        )

    async def _apply(self, config: ServerBootConfiguration, server: Server, plan: Plan, architecture: str) -> Finding:
        deps, kinds = self.deps, self.deps.context.kinds
        wanted = ipxe_boot_config.desired(config, server, plan, deps.settings.base_url, kinds, architecture)
        found = deps.children.get(Key(config.metadata.name, config.metadata.namespace))
        if ipxe_boot_config.differs(found, config, wanted):
            if found is None:
                await self._require_owner(config)
            manager = f"{kinds.boot_group}/controller-manager"
            found = await deps.context.client.apply(kinds.ipxe, wanted, manager=manager)
            deps.children.observe(found)
        await self._child_state(found, READY)
        return Finding(READY, "BootConfigReady", "the IPXEBootConfig is ready")

    async def _require_owner(self, config: ServerBootConfiguration) -> None:
        """Read the owner from the API: a child of an owner that was deleted would be garbage-collected.

        Raises NotFound and Conflict; the next pass follows after the cache was updated.
        """
        meta, kind = config.metadata, self.deps.context.kinds.boot_config
        there = await self.deps.context.client.get(kind, meta.name, meta.namespace)
        if there.metadata.uid != meta.uid:
            raise Conflict(f"{kind.kind} {key_of(config)} was deleted and created again")

    async def _child_state(self, found: IPXEBootConfig | None, state: str) -> None:
        if found is None or found.status.state == state:
            return
        meta, context = found.metadata, self.deps.context
        kind, body = context.kinds.ipxe, {"status": {"state": state}}
        fresh = await context.client.patch_status(kind, meta.name, body, meta.namespace)
        self.deps.children.observe(fresh)
        transitions.record(context.metrics, kind, fresh, found.status, fresh.status)

    def _report(self, scope: ConfigScope, findings: list[Finding]) -> None:
        """Set the status that the findings amount to."""
        config = scope.obj
        status = self._with_fetches(config, status_of(config, findings, scope.now))
        scope.set(**{name: getattr(status, name) for name in status.__struct_fields__})

    async def _report_child(self, config: ServerBootConfiguration, status: ServerBootConfigurationStatus) -> None:
        """The IPXEBootConfig of a configuration that is not Ready has the same state, and is not served."""
        found = self.deps.children.get(key_of(config))
        if status.state != READY and found is not None and is_controlled_by(found, config):
            await self._child_state(found, status.state)

    def _with_fetches(
        self, config: ServerBootConfiguration, status: ServerBootConfigurationStatus
    ) -> ServerBootConfigurationStatus:
        """Add what the machine fetched in the last boot of this configuration, from the Server's boot window."""
        server = self.deps.servers.get(Key(config.spec.server_ref.name))
        window = server.status.boot_window if server is not None else None
        if window is None or window.config_uid != config.metadata.uid:
            return status
        seen = (
            ("IPXEScriptFetched", "IPXEScriptDelivered", window.script_served_at),
            ("IgnitionDataFetched", "IgnitionDataDelivered", window.ignition_served_at),
        )
        for type, reason, at in seen:
            if at is not None:
                message = f"fetched in boot {window.id}"
                status = with_condition(status, Condition(type=type, status="True", reason=reason, message=message), at)
        return status

    def _record_event(
        self, config: ServerBootConfiguration, status: ServerBootConfigurationStatus, findings: list[Finding]
    ) -> None:
        """Record an Event for an error and for its end; the usual way to Ready causes none."""
        if status.state == config.status.state:
            return
        event, kind = self.deps.context.recorder.event, self.deps.context.kinds.boot_config
        if status.state == ERROR:
            worst = next(finding for finding in findings if finding.state == ERROR)
            event(config, kind, "Warning", worst.reason, worst.message)
        elif status.state == READY and config.status.state == ERROR:
            event(config, kind, "Normal", "Ready", "image and Ignition are ready again")

    def _forget(self, key: Key) -> None:
        self._memos.pop(key, None)
        self._lookups.drop(str(key))
        self._user_data.forget(key)
        self.deps.images.release(str(key))


def _ready(plan: Plan) -> Finding:
    return Finding(READY, "Resolved", f"{plan.kernel.image} is verified and local", _IMAGE)


def _unfinished(config: ServerBootConfiguration) -> Finding:
    """What is reported of a pass that the API refused to let end."""
    state = READY if is_ready(config) else PENDING
    return Finding(state, "Refused", "the API to accept the requests of the controller (see the condition Reconciled)")


def _image_missing(config: ServerBootConfiguration) -> str:
    """The probe image comes from the configuration, so its message names the option instead of spec.image."""
    if any(key.endswith("/is-default-os-image") for key in config.metadata.annotations):
        return "no probe image is configured: set probeImage in the configuration of the control plane"
    return "spec.image is empty: set it to the OCI image to boot (in the ServerClaim, if a claim owns this object)"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler. Only Secrets that boot configurations name are read."""
    ignition = "validates the Ignition that a boot configuration names"
    return (
        *follows(
            kinds.boot_config, kinds.server, kinds.ipxe, why="writes an IPXEBootConfig for each boot configuration"
        ),
        Permission(SECRET, ("get",), ignition, where=Where.TENANTS),
        Permission(SECRET, ("get",), ignition, where=Where.HOME),
        Permission(kinds.ipxe, APPLY, "writes the IPXEBootConfig that is served to a machine"),
        Permission(kinds.ipxe, ("patch",), "reports whether the IPXEBootConfig can be served", "status"),
        Permission(kinds.boot_config, ("get",), "creates no IPXEBootConfig for a deleted boot configuration"),
        Permission(kinds.boot_config, ("patch",), "reports whether the boot is prepared", "status"),
        blocks(kinds.boot_config),
        disowns(kinds.ipxe),
    )
