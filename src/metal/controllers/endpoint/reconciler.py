"""Turns an Endpoint whose MAC prefix is that of a BMC into a BMC and a BMCSecret. Other Endpoints are left alone."""

from collections.abc import Iterable
from datetime import timedelta

from metal.api.bmc import BMC, BMCSecret
from metal.api.endpoint import Endpoint, EndpointStatus
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION
from metal.bmc.errors import BMCAuthError, BMCError
from metal.bmc.pool import Pool
from metal.controllers.endpoint.enrolment import Enrolment, NotPossible, Refused
from metal.controllers.endpoint.mac_prefixes import HEX, Prefix, normalise
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.shared.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.predicates import spec_or_metadata_changed
from metal.controllers.shared.scope import Context, StatusScope
from metal.controllers.shared.sessions import explain
from metal.kube.cache.informer import Informer
from metal.kube.client.backoff import Backoff
from metal.kube.controller.controller import Controller, Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows

Scope = StatusScope[Endpoint]
BY_MAC = "mac-digits"
"""Index of Endpoints by the digits of their MAC address."""


def by_mac(endpoint: Endpoint) -> Iterable[str]:
    """Index: the digits of the MAC address; an empty one is in no index."""
    digits = normalise(endpoint.spec.mac_address)
    return (digits,) if digits else ()


def bmc_by_mac(bmc: BMC) -> Iterable[str]:
    """Index: the digits of the MAC address of an inline access."""
    digits = normalise(bmc.spec.access.mac_address) if bmc.spec.access else ""
    return (digits,) if digits else ()


class EndpointReconciler:
    """Finds the device in the MAC prefix file, tries its credentials, creates BMCSecret and BMC once, and says so."""

    def __init__(
        self,
        context: Context,
        runtime: Runtime,
        pool: Pool,
        prefixes: PrefixFile,
        defaults: BMCEndpointDefaults,
        settings: EndpointSettings,
    ) -> None:
        self.context, self.settings, self.prefixes, self.pool = context, settings, prefixes, pool
        kinds = context.kinds
        self.endpoints: Informer[Endpoint] = runtime.informer(kinds.endpoint)
        self.bmcs: Informer[BMC] = runtime.informer(kinds.bmc)
        self.secrets: Informer[BMCSecret] = runtime.informer(kinds.bmc_secret)
        self.endpoints.add_index(BY_MAC, by_mac)
        self.bmcs.add_index("access-mac", bmc_by_mac)
        self.enrolment = Enrolment(context, self.bmcs, self.secrets, pool, defaults, settings)
        self._backoffs: dict[Key, Backoff] = {}

    async def reconcile(self, key: Key) -> Result:
        """One step for one Endpoint."""
        endpoint = self.endpoints.get(key)
        if endpoint is None:
            self._forget(key)
            return Done()
        await self.enrolment.disown(endpoint)
        if endpoint.metadata.deletion_timestamp is not None:
            finalizer = self.context.kinds.key("endpoint")
            await remove_finalizer(self.context.client, self.context.kinds.endpoint, endpoint, finalizer)
            return Done()
        if endpoint.metadata.annotations.get(self.context.kinds.key(OPERATION)) == IGNORE:
            return Done()
        scope = StatusScope(self.context, self.context.kinds.endpoint, self.endpoints, endpoint, EndpointStatus())
        result = await self._step(scope)
        await scope.commit()
        return result

    async def _step(self, scope: Scope) -> Result:
        digits = normalise(scope.obj.spec.mac_address)
        if len(digits) != 12 or not HEX.issuperset(digits):
            return self._stop(scope, "Error", "MACAddressInvalid", _bad_mac(scope.obj.spec.mac_address))
        prefix = self.prefixes.prefixes.lookup(digits)
        if prefix is None or not prefix.is_bmc:
            return self._not_a_bmc(scope, prefix)
        if twin := self._elder(scope.obj, digits):
            text = f"Endpoint {twin} has the same MAC address and is older: delete one of the two"
            return self._stop(scope, "Error", "DuplicateMACAddress", text)
        if by_hand := [bmc for bmc in self.bmcs.by_index("access-mac", digits) if bmc.metadata.name != scope.name]:
            text = f"BMC {by_hand[0].metadata.name} has this MAC address already; nothing is created"
            return self._stop(scope, "Ignored", "ManagedByOtherBMC", text)
        return await self._enrol(scope, prefix)

    async def _enrol(self, scope: Scope, prefix: Prefix) -> Result:
        if self.enrolment.complete(scope.obj):
            return self._ready(scope)
        if self.enrolment.needs_contact(scope.obj) and (rest := self._resting(scope)):
            return Requeue(rest)
        try:
            await self.enrolment.run(scope.obj, prefix)
        except Refused as exc:
            return self._refused(scope, exc)
        except BMCError as exc:
            return self._unreachable(scope, exc)
        except NotPossible as exc:
            return self._stop(scope, "Pending", exc.problem.reason, exc.problem.message)
        scope.event("Normal", "BMCCreated", f"created BMC {scope.name} with credentials that the device accepted")
        return self._ready(scope)

    def _ready(self, scope: Scope) -> Result:
        self._backoffs.pop(key_of(scope.obj), None)
        scope.state("Ready")
        scope.set(credentials_refused_at=None)
        scope.report("Ready", True, "BMCCreated", f"BMC {scope.name} stands for this device")
        return Done()

    def _not_a_bmc(self, scope: Scope, prefix: Prefix | None) -> Result:
        """Usual for the leases of hosts, hence no Event and no retry; a changed file brings every Endpoint back."""
        what = f"is of type {prefix.type}" if prefix else "has no MAC prefix that is known as that of a BMC"
        hint = f" (the MAC prefix file has an error: {self.prefixes.problem})" if self.prefixes.problem else ""
        scope.state("Ignored")
        scope.condition("Ready", False, "NotABMC", f"the device {what}; nothing is created for it{hint}")
        return Done()

    def _stop(self, scope: Scope, state: str, reason: str, message: str) -> Result:
        scope.state(state, message if state == "Pending" else "")
        scope.report("Ready", False, reason, message)
        return Done()

    def _unreachable(self, scope: Scope, exc: BMCError) -> Result:
        scope.state("Pending", f"the BMC at {scope.obj.spec.ip} to answer")
        scope.report("Ready", False, exc.reason, explain(exc))
        return Requeue(self._backoff(key_of(scope.obj)).next())

    def _refused(self, scope: Scope, exc: Refused) -> Result:
        scope.state("Error", "credentials that the BMC accepts")
        scope.set(credentials_refused_at=scope.now)
        scope.report("Ready", False, BMCAuthError.reason, str(exc))
        return Requeue(self.context.jitter(self.settings.credentials_rest) + 1)

    def _resting(self, scope: Scope) -> float:
        """Seconds for which the credentials still rest; a changed Endpoint, file or BMCSecret ends the rest."""
        refused_at = scope.status.credentials_refused_at
        if refused_at is None or scope.status.observed_generation != scope.obj.metadata.generation:
            return 0.0
        changed_at = self.prefixes.changed_at
        if changed_at is not None and changed_at > refused_at:
            return 0.0
        until = refused_at + timedelta(seconds=self.settings.credentials_rest)
        return max(0.0, float((until - scope.now).total_seconds()))

    def _elder(self, endpoint: Endpoint, digits: str) -> str:
        """Name of the Endpoint that has this MAC address with more right, or empty."""
        eldest = min(self.endpoints.by_index(BY_MAC, digits), key=_age, default=endpoint)
        return "" if eldest.metadata.name == endpoint.metadata.name else eldest.metadata.name

    def _backoff(self, key: Key) -> Backoff:
        fresh = Backoff(self.context.rng, base=self.settings.retry, cap=self.settings.retry_most)
        return self._backoffs.setdefault(key, fresh)

    def _forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)
        self.enrolment.forget(key.name)


def setup(reconciler: EndpointReconciler, runtime: Runtime) -> Controller:
    """Register the reconciler with everything that can change what an Endpoint needs."""
    settings = reconciler.settings
    controller = runtime.controller(
        "endpoint", reconciler.reconcile, workers=settings.workers, deadline=settings.contact_timeout * 2 + 10
    )
    endpoints = reconciler.endpoints

    def twins(endpoint: Endpoint) -> list[Key]:
        same = [twin for digits in by_mac(endpoint) for twin in endpoints.by_index(BY_MAC, digits)]
        return [key_of(endpoint), *map(key_of, same)]

    def everybody() -> None:
        for endpoint in endpoints.items():
            controller.queue.add(key_of(endpoint))

    controller.watches(endpoints, twins, spec_or_metadata_changed)
    controller.watches(reconciler.bmcs, predicate=spec_or_metadata_changed)
    controller.watches(reconciler.secrets, predicate=spec_or_metadata_changed)
    reconciler.prefixes.on_change(everybody)
    runtime.background("mac-prefixes", reconciler.prefixes.run)
    return controller


def _age(endpoint: Endpoint) -> tuple[str, str]:
    created = endpoint.metadata.creation_timestamp
    return (created.isoformat() if created else "", endpoint.metadata.name)


def _bad_mac(mac: str) -> str:
    return f"spec.macAddress is {mac!r}: write six pairs of hexadecimal digits, for example 00:1a:2b:3c:4d:5e"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API."""
    return (
        *follows(kinds.endpoint, kinds.bmc, kinds.bmc_secret, why="a BMC's lease becomes a BMC and its BMCSecret"),
        Permission(kinds.endpoint, ("patch",), "takes the finalizer of older operators off"),
        Permission(kinds.endpoint, ("patch",), "says what became of a lease", "status"),
    )
