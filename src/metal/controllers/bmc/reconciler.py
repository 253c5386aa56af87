"""Keeps a BMC's status true, and its systems enrolled as Servers."""

from collections.abc import Iterable

from metal.api.bmc import BMC, BMCSecret
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.bmc.protocols import Pool, Shell
from metal.bmc.ssh import SSHShell
from metal.controllers.bmc import restart
from metal.controllers.bmc.check import observe
from metal.controllers.bmc.connect import find_access, let_rest
from metal.controllers.bmc.dns import ensure_record
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.event_subscription import subscribe
from metal.controllers.bmc.finalize import finalize
from metal.controllers.bmc.operations import operate
from metal.controllers.bmc.restart import expire
from metal.controllers.bmc.scope import BY_UUID, Deps, Scope
from metal.controllers.bmc.servers import enrol
from metal.controllers.bmc.trust import accept
from metal.controllers.shared.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.bmc_events import flowing
from metal.controllers.shared.predicates import spec_or_metadata_changed
from metal.controllers.shared.scope import Context
from metal.controllers.shared.settings import BMCSettings
from metal.kube.client.discovery import Discovery
from metal.kube.controller.controller import Controller, Done, Requeue, Result, owner_keys
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows


def by_secret(bmc: BMC) -> Iterable[str]:
    """Index: name of the BMCSecret."""
    return (bmc.spec.bmc_secret_ref.name,)


def by_endpoint(bmc: BMC) -> Iterable[str]:
    """Index: name of the Endpoint."""
    return (bmc.spec.endpoint_ref.name,) if bmc.spec.endpoint_ref else ()


def by_uuid(server: Server) -> Iterable[str]:
    """Index: UUID of the system in lower case."""
    return (server.uuid,) if server.uuid else ()


class BMCReconciler:
    """Checks a BMC at an interval: who it is, how it is, and which systems it has."""

    def __init__(
        self,
        context: Context,
        runtime: Runtime,
        pool: Pool,
        defaults: BMCEndpointDefaults,
        settings: BMCSettings,
        *,
        shell: Shell | None = None,
        template: Template | None = None,
    ) -> None:
        kinds = context.kinds
        self.deps = Deps(
            context,
            settings,
            defaults,
            pool,
            shell or SSHShell(),
            bmcs=runtime.informer(kinds.bmc),
            secrets=runtime.informer(kinds.bmc_secret),
            endpoints=runtime.informer(kinds.endpoint),
            servers=runtime.informer(kinds.server),
            discovery=Discovery(context.client),
            template=template,
        )
        self.deps.bmcs.add_index("secret", by_secret)
        self.deps.bmcs.add_index("endpoint", by_endpoint)
        self.deps.servers.add_index(BY_UUID, by_uuid)

    async def reconcile(self, key: Key) -> Result:
        """One step for one BMC."""
        bmc = self.deps.bmcs.get(key)
        if bmc is None:
            self.deps.memos.pop(key, None)
            return Done()
        scope = Scope(self.deps, bmc)
        if result := await finalize(scope):
            return result
        if scope.operation == "ignore":
            return Done()
        result = restart.bound(scope, await self._phases(scope))
        await ensure_record(scope)  # also of a BMC that does not answer: then its name is wanted most
        await scope.commit()
        return result

    async def _phases(self, scope: Scope) -> Result:
        for phase in (accept, expire, find_access, let_rest, operate, observe, enrol, subscribe):
            if result := await phase(scope):
                return result
        settings = self.deps.settings
        slower = settings.event_slowdown if flowing(scope.status, scope.now, settings.event_max_age) else 1.0
        return Requeue(self.deps.context.jitter(settings.interval * slower))


def setup(reconciler: BMCReconciler, runtime: Runtime) -> Controller:
    """Register the reconciler with everything that can change what a BMC needs."""
    deps = reconciler.deps
    settings = deps.settings
    controller = runtime.controller(
        "bmc", reconciler.reconcile, workers=settings.workers, deadline=settings.contact_timeout * 2 + 20
    )

    def of_secret(secret: BMCSecret) -> list[Key]:
        return [key_of(bmc) for bmc in deps.bmcs.by_index("secret", secret.metadata.name)]

    def of_endpoint(endpoint: Endpoint) -> list[Key]:
        return [key_of(bmc) for bmc in deps.bmcs.by_index("endpoint", endpoint.metadata.name)]

    controller.watches(deps.bmcs, predicate=_calls)
    controller.watches(deps.secrets, of_secret, spec_or_metadata_changed)
    controller.watches(deps.endpoints, of_endpoint, spec_or_metadata_changed)
    controller.watches(deps.servers, owner_keys(deps.context.kinds.bmc), _came_or_went)
    return controller


def _calls(old: BMC | None, new: BMC | None) -> bool:
    """Whether the BMC is to be looked at: also when a person's console pinned or refused its host key."""
    return spec_or_metadata_changed(old, new) or (
        old is not None and new is not None and _host_key(old) != _host_key(new)
    )


def _host_key(bmc: BMC) -> tuple[str, str]:
    pin = bmc.status.ssh_host_key
    return (pin.sha256, pin.refused) if pin is not None else ("", "")


def _came_or_went(old: Server | None, new: Server | None) -> bool:
    """A Server's own changes are none of the BMC's business, but a deleted one may have to come back."""
    if old is None:
        return False  # created by the BMC's own pass, or listed at the start, when every BMC is looked at anyway
    return new is None or old.uuid != new.uuid


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API, but for what its modules declare."""
    return (
        *follows(kinds.bmc, kinds.bmc_secret, kinds.endpoint, kinds.server, why="each BMC is looked at and enrolled"),
        Permission(kinds.bmc, ("patch",), "keeps its finalizer, and removes operations that were obeyed"),
        Permission(kinds.bmc, ("patch",), "says how the BMC is", "status"),
    )
