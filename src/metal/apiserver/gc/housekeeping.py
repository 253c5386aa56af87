"""Controllers of a cluster: a `default` ServiceAccount in each namespace, default roles, aggregated ClusterRoles.

Level-triggered: an event only queues the namespace, or a pass over the roles.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from metal.apiserver.auth.authorizer import CLUSTER_ROLES
from metal.apiserver.auth.rbac_bootstrap import AUTOUPDATE, bootstrap
from metal.apiserver.machinery.records import NAMESPACES, SERVICE_ACCOUNTS, Event, ObjectKey, Record, ResourceKey
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.storage.store import Store
from metal.kube.meta.clock import Clock, timestamp
from metal.kube.meta.selectors import from_object

Obj = dict[str, Any]

DEFAULT = "default"
RETRY_SECONDS = 1.0
_WATCHED = frozenset({NAMESPACES, SERVICE_ACCOUNTS, CLUSTER_ROLES})

log = structlog.get_logger("metal.apiserver")


class Housekeeper:
    """`start` creates what must exist, `run` keeps it. account: creates the default ServiceAccount of a namespace."""

    def __init__(
        self, store: Store, clock: Clock, uid: Callable[[], str], account: Callable[[str], Awaitable[object]]
    ) -> None:
        self._store, self._clock, self._uid, self._account = store, clock, uid, account
        self._spaces: dict[str, None] = {}
        self._roles = False
        self._wake = asyncio.Event()

    async def start(self) -> None:
        """Create roles and accounts that must exist, and follow the store from then on."""
        await asyncio.gather(*(self._ensure(key, obj) for key, obj in bootstrap()))
        self._store.listen(self._on_event)
        self._roles = True
        self._spaces = {record.key.name: None for record in self._store.collection(NAMESPACES)}
        await self._once()

    def _on_event(self, event: Event) -> None:
        key = event.record.key
        if key.resource not in _WATCHED:
            return
        if key.resource == CLUSTER_ROLES:
            self._roles = True
        elif key.resource == NAMESPACES:
            self._spaces[key.name] = None
        else:
            self._spaces[key.namespace] = None
        self._wake.set()

    async def run(self) -> None:
        """Keep what must exist, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._once()
            except Exception:
                log.exception("housekeeping.failed")
                await asyncio.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _once(self) -> None:
        while self._spaces:
            space = next(iter(self._spaces))
            await self._ensure_default_account(space)
            # Removed only now, so that a failed namespace is retried.
            del self._spaces[space]
        while self._roles:
            self._roles = False
            try:
                await self._aggregate_rules()
            except BaseException:
                self._roles = True
                raise

    async def _ensure_default_account(self, space: str) -> None:
        found = self._store.newest(ObjectKey(NAMESPACES, "", space))
        if found is None or found.deleting:
            return
        if self._store.newest(ObjectKey(SERVICE_ACCOUNTS, space, DEFAULT)) is not None:
            return
        try:
            await self._account(space)
        except StatusError as refused:
            if refused.reason not in ("AlreadyExists", "NotFound", "Forbidden"):
                raise

    async def _aggregate_rules(self) -> None:
        """Set the rules of each role with an aggregationRule to those of the roles that it selects, sorted by name."""
        for record in self._store.collection(CLUSTER_ROLES):
            role = record.decode()
            if not (role.get("aggregationRule") or {}).get("clusterRoleSelectors"):
                continue
            rules = self._aggregated(role)
            if rules != (role.get("rules") or []) and not record.deleting:
                await self._store.write(CLUSTER_ROLES, {**role, "rules": rules})

    def _aggregated(self, role: Obj) -> list[Obj]:
        chosen = [from_object(one) for one in role["aggregationRule"]["clusterRoleSelectors"]]
        rules: list[Obj] = []
        for record in self._store.collection(CLUSTER_ROLES):
            if record.key.name != role["metadata"]["name"] and any(one.matches(record.labels) for one in chosen):
                rules += [rule for rule in record.decode().get("rules") or () if rule not in rules]
        return rules

    async def _ensure(self, resource: ResourceKey, obj: Obj) -> None:
        found = self._store.newest(ObjectKey(resource, "", obj["metadata"]["name"]))
        if found is None:
            identity = {"uid": self._uid(), "creationTimestamp": timestamp(self._clock())}
            await self._store.write(resource, {**obj, "metadata": {**obj["metadata"], **identity}})
        else:
            await self._repair(resource, found, obj)

    async def _repair(self, resource: ResourceKey, found: Record, obj: Obj) -> None:
        """Add rules or subjects that are missing; additions of others are kept."""
        stored = found.decode()
        if (stored["metadata"].get("annotations") or {}).get(AUTOUPDATE) != "true" or "aggregationRule" in obj:
            return
        field = "rules" if "rules" in obj else "subjects"
        held = stored.get(field) or []
        if lacking := [entry for entry in obj[field] if entry not in held]:
            await self._store.write(resource, {**stored, field: held + lacking})
