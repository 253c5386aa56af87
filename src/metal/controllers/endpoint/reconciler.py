"""One pass over one Endpoint: an Endpoint whose MAC prefix is that of a BMC gets a BMC and a BMCSecret.

Every DHCP lease becomes an Endpoint, so most of them are hosts: they get the state Ignored, and neither an Event nor a
retry. Of several Endpoints with one MAC address only the oldest gets a BMC. Refused credentials are not tried again for
`credentials_rest`, since BMCs lock accounts after a few failed logins, unless the Endpoint, its BMCSecret or the MAC
prefix file changes.
"""

from datetime import timedelta

from metal.api.endpoint import Endpoint, EndpointStatus
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION
from metal.bmc.errors import BMCAuthError, BMCError
from metal.controllers.endpoint import approval
from metal.controllers.endpoint.enrolment import CredentialsRefused, Enrolment, NotReachable
from metal.controllers.endpoint.mac_prefixes import HEX, Prefix, normalise
from metal.controllers.endpoint.scope import BY_ACCESS_MAC, EndpointDeps, EndpointScope
from metal.controllers.shared.access.enrolment_policy import PENDING_APPROVAL, approval_text
from metal.controllers.shared.access.sessions import explain
from metal.controllers.shared.reconciled import refusals, reporting
from metal.kube.client.backoff import Backoff
from metal.kube.controller.controller import Done, Requeue, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows
from metal.machine import directory


class EndpointReconciler:
    """Looks the device up in the MAC prefix database, tries its credentials, and creates BMCSecret and BMC once."""

    def __init__(self, deps: EndpointDeps) -> None:
        self.deps = deps
        self.enrolment = Enrolment(deps)
        self._backoffs: dict[Key, Backoff] = {}

    async def reconcile(self, key: Key) -> Result:
        """One pass for one Endpoint."""
        endpoint = self.deps.endpoints.get(key)
        if endpoint is None:
            self._forget(key)
            return Done()
        context = self.deps.context
        scope = EndpointScope(context, context.kinds.endpoint, self.deps.endpoints, endpoint, EndpointStatus())
        async with refusals(scope):
            await self.enrolment.remove_owner_references(endpoint)
            if endpoint.metadata.deletion_timestamp is not None:
                await remove_finalizer(context.client, scope.kind, endpoint, context.kinds.key("endpoint"))
                return Done()
        if endpoint.metadata.annotations.get(context.kinds.key(OPERATION)) == IGNORE:
            return Done()
        async with reporting(scope):
            return await self._step(scope)

    async def _step(self, scope: EndpointScope) -> Result:
        digits = normalise(scope.obj.spec.mac_address)
        if len(digits) != 12 or not HEX.issuperset(digits):
            return self._stop(scope, "Error", "MACAddressInvalid", _bad_mac(scope.obj.spec.mac_address))
        prefix = self.deps.prefixes.prefixes.lookup(digits)
        if prefix is None or not prefix.is_bmc:
            return self._not_a_bmc(scope, prefix)
        if older := self._older_duplicate(scope.obj):
            return self._duplicate(scope, older)
        if others := [bmc for bmc in self.deps.bmcs.by_index(BY_ACCESS_MAC, digits) if bmc.metadata.name != scope.name]:
            text = f"BMC {others[0].metadata.name} already has this MAC address; nothing is created"
            return self._stop(scope, "Ignored", "ManagedByOtherBMC", text)
        return await self._enrol(scope, prefix)

    async def _enrol(self, scope: EndpointScope, prefix: Prefix) -> Result:
        if self.enrolment.complete(scope.obj):
            return self._ready(scope)
        if outside := self.deps.defaults.policy.outside(scope.obj.spec.ip or ""):
            return self._stop(scope, "Pending", "AddressNotAllowed", outside)
        if await approval.is_awaited(self.deps, self.enrolment, scope.obj, prefix):
            return self._stop(scope, "Pending", PENDING_APPROVAL, f"waiting for {approval_text(scope.name)}")
        if self.enrolment.needs_contact(scope.obj) and (rest := self._credentials_backoff(scope)):
            return Requeue(rest)
        try:
            await self.enrolment.run(scope.obj, prefix)
        except CredentialsRefused as exc:
            return self._refused(scope, exc)
        except BMCError as exc:
            return self._unreachable(scope, exc)
        except NotReachable as exc:
            return self._stop(scope, "Pending", exc.problem.reason, exc.problem.message)
        scope.event("Normal", "BMCCreated", f"created BMC {scope.name} with credentials that the device accepted")
        return self._ready(scope)

    def _ready(self, scope: EndpointScope) -> Result:
        self._backoffs.pop(key_of(scope.obj), None)
        scope.state("Ready")
        scope.set(credentials_refused_at=None)
        scope.report("Ready", True, "BMCCreated", f"BMC {scope.name} represents this device")
        return Done()

    def _not_a_bmc(self, scope: EndpointScope, prefix: Prefix | None) -> Result:
        """Report the usual case, without Event or retry; a changed MAC prefix file causes a pass for each Endpoint."""
        what = f"is of type {prefix.type}" if prefix else "has a MAC prefix that is not in the MAC prefix database"
        hint = (
            f" (the MAC prefix file has an error: {self.deps.prefixes.problem})" if self.deps.prefixes.problem else ""
        )
        scope.state("Ignored")
        scope.condition("Ready", False, "NotABMC", f"the device {what}; no BMC is created{hint}")
        return Done()

    def _stop(self, scope: EndpointScope, state: str, reason: str, message: str) -> Result:
        scope.state(state, message if state == "Pending" else "")
        scope.report("Ready", False, reason, message)
        return Done()

    def _unreachable(self, scope: EndpointScope, exc: BMCError) -> Result:
        scope.state("Pending", f"the BMC at {scope.obj.spec.ip} to answer")
        scope.report("Ready", False, exc.reason, explain(exc))
        return Requeue(self._backoff(key_of(scope.obj)).next())

    def _refused(self, scope: EndpointScope, exc: CredentialsRefused) -> Result:
        scope.state("Error", "credentials that the BMC accepts")
        scope.set(credentials_refused_at=scope.now)
        scope.report("Ready", False, BMCAuthError.reason, str(exc))
        return Requeue(self.deps.context.jitter(self.deps.settings.credentials_rest) + 1)

    def _credentials_backoff(self, scope: EndpointScope) -> float:
        """Seconds until refused credentials may be tried again; 0 once the Endpoint or the MAC prefix file changed."""
        refused_at = scope.status.credentials_refused_at
        if refused_at is None or scope.status.observed_generation != scope.obj.metadata.generation:
            return 0.0
        changed_at = self.deps.prefixes.changed_at
        if changed_at is not None and changed_at > refused_at:
            return 0.0
        until = refused_at + timedelta(seconds=self.deps.settings.credentials_rest)
        return max(0.0, float((until - scope.now).total_seconds()))

    def _older_duplicate(self, endpoint: Endpoint) -> Endpoint | None:
        """An older Endpoint with the MAC address of this one."""
        oldest = min(directory.with_mac(self.deps.endpoints, endpoint), key=_age, default=endpoint)
        return None if oldest.metadata.name == endpoint.metadata.name else oldest

    def _duplicate(self, scope: EndpointScope, older: Endpoint) -> Result:
        name = older.metadata.name
        if _is_ipv6(scope.obj) != _is_ipv6(older):
            text = f"Endpoint {name} has this device's address of the other IP family, and the BMC is used at that one"
            return self._stop(scope, "Ignored", "OtherAddressFamily", text)
        text = f"Endpoint {name} has the same MAC address and is older: delete one of the two"
        return self._stop(scope, "Error", "DuplicateMACAddress", text)

    def _backoff(self, key: Key) -> Backoff:
        fresh = Backoff(self.deps.context.rng, base=self.deps.settings.retry, cap=self.deps.settings.retry_most)
        return self._backoffs.setdefault(key, fresh)

    def _forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)
        self.enrolment.forget(key.name)


def _age(endpoint: Endpoint) -> tuple[str, str]:
    created = endpoint.metadata.creation_timestamp
    return (created.isoformat() if created else "", endpoint.metadata.name)


def _is_ipv6(endpoint: Endpoint) -> bool:
    return ":" in (endpoint.spec.ip or "")


def _bad_mac(mac: str) -> str:
    return f"spec.macAddress is {mac!r}: write six pairs of hexadecimal digits, for example 00:1a:2b:3c:4d:5e"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler."""
    return (
        *follows(
            kinds.endpoint, kinds.bmc, kinds.bmc_secret, why="creates a BMC and a BMCSecret for the lease of a BMC"
        ),
        Permission(kinds.endpoint, ("patch",), "removes the finalizer of the Go operator"),
        Permission(kinds.endpoint, ("patch",), "reports what was created for a lease", "status"),
    )
