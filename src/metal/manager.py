"""The one place where everything is put together: controllers, boot server and registry over one client."""

import asyncio
import contextlib
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest

from metal.api.core import EVENT, LEASE, NAMESPACE
from metal.api.kinds import Kinds, kinds
from metal.api.server import Server
from metal.bmc.pool import Pool
from metal.bmc.shell import Shell
from metal.bmc.ssh import SSHShell
from metal.boot.cache import BlobCache
from metal.boot.images import Images, Quota, RegistryImages
from metal.boot.registry.credentials import AuthFile, CredentialSource
from metal.boot.registry_client import RegistryClient
from metal.config import Config, shared_options
from metal.config.check import split_listen
from metal.controllers.bmc.watches import setup_bmcs
from metal.controllers.bmcsecret.watches import setup_bmc_secrets
from metal.controllers.bootconfig.registry_secret import AuthSecret
from metal.controllers.bootconfig.watches import setup_boot_configs
from metal.controllers.claim.settings import ClaimSettings
from metal.controllers.claim.watches import setup_claims
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.endpoint.watches import setup_endpoints
from metal.controllers.maintenance.watches import setup_maintenances
from metal.controllers.readiness.watches import setup_readiness
from metal.controllers.server.watches import setup_servers
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.metrics.boots import observe_boots
from metal.controllers.shared.metrics.fleet import Fleet, FleetCollector
from metal.controllers.shared.metrics.metrics import Metrics
from metal.controllers.shared.scope import Context
from metal.kube.client.errors import AlreadyExists, Forbidden, NotFound, Unauthorized
from metal.kube.client.protocol import Client
from metal.kube.controller.election import Elector
from metal.kube.controller.events import Recorder
from metal.kube.controller.health import Health
from metal.kube.controller.runtime import Runtime
from metal.kube.controller.tasks import Crashed, Tasks, completed, first
from metal.kube.meta.clock import Clock, system_clock
from metal.kube.meta.permissions import Permission, Where
from metal.listener.metrics import Metrics as ListenerMetrics
from metal.listener.server import RunningServer, listen
from metal.machine.directory import CachedDirectory
from metal.machineapi.bmcevents.receiver import EventReceiver
from metal.machineapi.bmcevents.routes import routes as event_routes
from metal.machineapi.bootserver.routes import routes as boot_routes
from metal.machineapi.bootserver.service import BootService
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.server import MACHINE_IDLE_SECONDS, Limits, make_app, serve
from metal.machineapi.registry.routes import routes as registry_routes
from metal.machineapi.registry.service import RegistryService, RegistrySettings
from metal.move.pause import INTERVAL, Pause
from metal.probe.bundle import zipapp

_log = structlog.get_logger("metal")
_STANDBY, _STOPPING = "standby", "stopping"


class ImageSource(Images, Protocol):
    """A source of images that is started and closed with the manager."""

    async def start(self) -> None:
        """Open the cache; called before the first request."""
        ...

    async def aclose(self) -> None:
        """Stop downloads and close connections."""
        ...


@dataclass
class Parts:
    """The dependencies of a manager; tests replace some."""

    client: Client
    pool: Pool
    config: Config
    prefixes: PrefixFile
    image_cache: Path
    clock: Clock = system_clock
    rng: random.Random = field(default_factory=random.Random)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    remote: RegistryClient | None = None
    """Client of OCI registries; made from the configuration when None."""
    images: ImageSource | None = None
    """The source of images; OCI registries when None."""
    shell: Shell | None = None
    """Access to BMCs' command lines; SSH when None."""
    elector: Elector | None = None
    """Chooses which of several managers acts; with None this one does. The pool must ask its `require`."""
    listeners: ListenerMetrics | None = None
    """Metrics of listeners, where another part of the process has one too; made when None."""
    health: Health = field(default_factory=Health)
    """The checks of this process; the manager adds its own."""
    pause_interval: float = INTERVAL
    """Seconds between two reads of the pause, less than `metal.move.pause.SILENCE`."""


class Manager:
    """Runs the controllers, the boot server and the registry. `start`, then `listen`, in the end `stop`.

    Caches, boot server and registry work in every manager; controllers in the leader, while the runtime has no hold.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts, self.config = parts, parts.config
        self.kinds: Kinds = kinds(self.config.api_group, self.config.boot_group)
        self.runtime = Runtime(parts.client, rng=parts.rng, registry=parts.registry)
        counted = self.runtime.metrics
        self.recorder = Recorder(parts.client, EVENT, component="metal-operator", clock=parts.clock, metrics=counted)
        self.runtime.background("events", self.recorder.run)
        name = parts.elector.settings.identity if parts.elector else f"manager-{parts.rng.getrandbits(64):016x}"
        self.pause = Pause(
            parts.client, self.config.namespace, self.runtime, name, parts.clock, interval=parts.pause_interval
        )
        self.runtime.background("pause", self.pause.run)
        self.images = self._images()
        self._controllers()
        refusals = Refusals(parts.clock, event=self._event, registry=parts.registry)
        directory = CachedDirectory(
            self.runtime.informer(self.kinds.server), self.runtime.informer(self.kinds.endpoint)
        )
        self.boot = BootService(
            self.pause.client, self.kinds, directory, self.images, refusals, self._boot_settings(),
            clock=parts.clock, rng=parts.rng,
        )  # fmt: skip
        reports = RegistrySettings(namespace=self.config.namespace)
        self.registry = RegistryService(
            self.pause.client, self.kinds, directory, refusals, reports, clock=parts.clock, rng=parts.rng
        )
        self.events = EventReceiver(
            self.pause.client, self.kinds, self.runtime.informer(self.kinds.bmc), refusals,
            clock=parts.clock, registry=parts.registry,
        )  # fmt: skip
        self.runtime.background("events of BMCs", self.events.run)
        self._refusals = refusals
        self._listening: list[RunningServer] = []
        self._election = Tasks("election")
        self._ready = False
        self._stopping = False
        self._checks(parts.health)
        if parts.elector is not None:
            parts.elector.on_lead, parts.elector.on_lose = self._lead, self._stand_by
            parts.elector.on_contact = self.runtime.retry

    def _checks(self, health: Health) -> None:
        health.add("caches", lambda: self.runtime.behind)
        health.add("tasks", lambda: self.runtime.failure or self._election.failure, live=True)
        health.add("manager", lambda: "" if self.role in ("leader", "standby") else self.role)

    @property
    def role(self) -> str:
        """starting, standby, leader or stopping."""
        if self._stopping or not self._ready:
            return "stopping" if self._stopping else "starting"
        elector = self.parts.elector
        return "leader" if elector is None or elector.leader else "standby"

    def _lead(self) -> None:
        self._compare_options()
        self.runtime.retry()
        self.runtime.release(_STANDBY)

    def _compare_options(self) -> None:
        """Report options that differ from those of the leader before this one; an ordinary rollout does so once."""
        elector = self.parts.elector
        if elector is None or elector.former is None:
            return
        lease, elector.former = elector.former, None
        if names := shared_options.differing(self.config, lease.metadata.annotations):
            text = (
                f"the options of the new leader differ from those of the one before: {', '.join(names)}. Unless the "
                "configuration is being changed, start all managers with the same one"
            )
            self.recorder.event(lease, LEASE, "Warning", "OptionsChanged", text)
            _log.warning("options differ from those of the former leader", options=names)

    async def _stand_by(self) -> None:
        await self.runtime.hold(_STANDBY, grace=0.0)

    def _boot_settings(self) -> BootSettings:
        config = self.config
        return BootSettings(
            base_url=config.boot_url, cache=self.parts.image_cache, cache_bytes=config.registries.cache_size,
            race_window=config.timeouts.race_window, butane=config.boot.butane, ipxe=Path(config.boot.ipxe_folder),
            architecture=config.boot.default_architecture,
        )  # fmt: skip

    def _images(self) -> ImageSource:
        if self.parts.images is not None:
            return self.parts.images
        config, parts = self.config, self.parts
        quota = Quota(config.registries.namespace_quota, frozenset((config.namespace,)))
        remote = parts.remote or RegistryClient(config.registry_settings(), credentials=self._registry_credentials())
        return RegistryImages(remote, BlobCache(parts.image_cache, config.registries.cache_size, parts.registry), quota)

    def _registry_credentials(self) -> list[CredentialSource]:
        listed, found = self.config.registries, list[CredentialSource]()
        if listed.auth_file:
            found.append(AuthFile(Path(listed.auth_file)))
        if listed.auth_secret:
            found.append(AuthSecret(self.parts.client, self.config.namespace, listed.auth_secret))
        return found

    def _controllers(self) -> None:
        parts, config, runtime = self.parts, self.config, self.runtime
        defaults = self._endpoint_defaults()
        metrics = Metrics(parts.registry)
        context = Context(parts.client, self.kinds, parts.clock, parts.rng, self.recorder, metrics)
        setup_endpoints(context, runtime, parts.pool, parts.prefixes, defaults, config.endpoint_settings())
        shell = parts.shell or SSHShell(permit=parts.elector.require if parts.elector else lambda: None)
        setup_bmcs(
            context, runtime, parts.pool, defaults, config.bmc_settings(), shell=shell, template=config.dns_template()
        )
        setup_bmc_secrets(context, runtime)
        server_settings = config.server_settings(zipapp())
        setup_servers(
            context, runtime, parts.pool, server_settings, endpoint_defaults=defaults, workers=config.bmc.workers
        )
        setup_claims(context, runtime, ClaimSettings(namespace=config.namespace))
        setup_maintenances(context, runtime, config.maintenance_settings())
        setup_readiness(context, runtime)
        setup_boot_configs(context, runtime, self.images, self._boot_settings())
        self._observe_fleet(metrics)

    def _observe_fleet(self, metrics: Metrics) -> None:
        of, kinds = self.runtime.informer, self.kinds
        fleet = Fleet(
            of(kinds.server), of(kinds.claim), of(kinds.boot_config), of(kinds.maintenance), of(kinds.bmc),
            of(kinds.endpoint),
        )  # fmt: skip
        self.parts.registry.register(FleetCollector(fleet, self.parts.clock))
        for name, digest in shared_options.digests(self.config).items():
            metrics.options.labels(name, digest).set(1)
        self.runtime.metrics.watch_leader(self.config.election.lease, lambda: self.role == "leader")
        observe_boots(fleet.servers, metrics, lambda: self.runtime.working)

    def _endpoint_defaults(self) -> BMCEndpointDefaults:
        options = self.config.bmc
        pem = Path(options.ca_file).read_text() if options.ca_file else ""
        return BMCEndpointDefaults(
            scheme=options.scheme,
            verify=options.verify,
            trust_on_first_use=options.trust_on_first_use,
            ca_pem=pem,
            policy=self.config.enrolment_policy(),
        )

    def _event(self, server: Server, kind: str, reason: str, message: str) -> None:
        self.recorder.event(server, self.kinds.server, kind, reason, message)

    async def start(self) -> None:
        """Make sure of the manager's namespace, open the image cache, fill the caches, start the controllers.

        With an elector they start when this manager is the leader. Raises OSError, and ApiError: Forbidden, NotFound
        and Unauthorized mean that rights or CRDs are missing; anything else is waited out once the namespace was seen.
        """
        await self._ensure_namespace()
        await self.pause.begin()
        await self.images.start()
        elector = self.parts.elector
        if elector is not None:
            await self._stand_by()
        await self.runtime.start(permanent=(Forbidden, NotFound, Unauthorized))
        if elector is not None:
            self._election.spawn("elector", elector.run)
        self._ready = True

    async def run(self, stop: asyncio.Event) -> None:
        """Return when `stop` is set. Raises Crashed when a task fails, or does not stop when it must."""
        await first(stop.wait(), self.runtime.crash(), self._election.crash())

    async def _ensure_namespace(self) -> None:
        """Only where it is missing: on a cluster the manager's account lives in it, and may not create namespaces."""
        client, name = self.parts.client, self.config.namespace
        try:
            await client.get(NAMESPACE, name)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await client.create(NAMESPACE, {"metadata": {"name": name}})

    async def listen(self) -> None:
        """Answer machines, and Prometheus. Raises OSError with the address when one is taken."""
        await completed(self._listen())

    async def _listen(self) -> None:
        metrics = self.parts.listeners or ListenerMetrics(self.parts.registry)
        for name, routes, address in (
            ("boot", boot_routes(self.boot), self.config.listen.boot),
            ("registry", registry_routes(self.registry), self.config.listen.registry),
            ("events", event_routes(self.events), self.config.listen.events),
        ):
            if not address:
                continue
            app = make_app(routes, self._refusals, self._machine_limits())
            self._listening.append(await serve(app, *split_listen(address), name=name, metrics=metrics))
        if self.config.listen.metrics:
            await self._listen_metrics(metrics)

    def _machine_limits(self) -> Limits:
        connection, options = self.config.connection_limits(), self.config.limits
        return Limits(
            connection=replace(connection, idle_seconds=MACHINE_IDLE_SECONDS),
            streams=options.image_streams, address_streams=options.image_streams_per_address,
        )  # fmt: skip

    async def _listen_metrics(self, metrics: ListenerMetrics) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of all series, and of no use to a rate
        app = web.Application()
        app.router.add_get("/metrics", self._show_metrics)
        for path in ("/livez", "/healthz", "/readyz", "/readyz/{check}", "/livez/{check}"):
            app.router.add_get(path, self._probe)
        address = split_listen(self.config.listen.metrics)
        limits = self.config.connection_limits()
        self._listening.append(await listen(app, *address, limits, name="metrics", metrics=metrics))

    async def _show_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self.parts.registry), content_type="text/plain")

    async def _probe(self, request: web.Request) -> web.Response:
        """The role in a word, or the checks when one fails or `verbose` asks for them. /healthz is /livez."""
        path, role = request.path.replace("/healthz", "/livez"), self.role
        found = self.parts.health.answer(path, request.query)
        if found is None:
            return web.Response(text="no such check", status=404)
        short = path == "/readyz" and "verbose" not in request.query
        if short and (found.passed or role in ("starting", "stopping")):
            return web.Response(text=f"ok {role}" if found.passed else role, status=200 if found.passed else 503)
        return web.Response(text=found.text, status=200 if found.passed else 503)

    async def stop(self, *, grace: float = 1.0) -> None:
        """Let reconciles end for up to `grace` seconds, give the Lease back, stop answering, log out of BMCs.

        Machines are answered until the Lease is given back: another replica needs no longer to take over than that.
        """
        self._stopping = True
        await self._release_lease(grace)
        for listening in self._listening:
            await listening.aclose()
        await self.runtime.stop(grace=0.0)
        await self.pause.leave()
        await self.images.aclose()
        await self.parts.pool.aclose()

    async def _release_lease(self, grace: float) -> None:
        """The Lease is released only when no controller acts any more; otherwise it expires."""
        try:
            await self.runtime.hold(_STOPPING, grace=grace)
            ended = True
        except Crashed as exc:
            _log.error("the Lease is not given back", error=str(exc))
            ended = False
        await self._election.stop(grace=0.0)
        if self.parts.elector is not None and ended:
            await self.parts.elector.release()


def required_permissions(namespace: str) -> tuple[Permission, ...]:
    """What the manager itself does with the API."""
    return (
        Permission(NAMESPACE, ("get",), "makes sure that its namespace is there", where=Where.HOME, names=(namespace,)),
    )
