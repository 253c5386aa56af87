"""Applies ServerReadinessRules: one pass for one Server over all rules, and one for each rule that begins or ends."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from metal.api.kinds import Kinds
from metal.api.readiness import ServerReadinessRule, ServerReadinessRuleStatus
from metal.api.server import Server
from metal.controllers.readiness import rules
from metal.controllers.shared.predicates import spec_or_metadata_changed
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.controller.controller import Done, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of
from metal.kube.meta.permissions import Permission, follows


@dataclass
class ServerReadinessReconciler:
    """Level-triggered: taints and annotations of a server change in one patch that its resourceVersion guards."""

    context: Context
    rules: Informer[ServerReadinessRule]
    servers: Informer[Server]

    def __post_init__(self) -> None:
        self._keys = rules.Keys(self.context.kinds.group)

    async def reconcile_server(self, key: Key) -> Result:
        """Taint the server for the rules that it does not satisfy. Raises Conflict when it has changed meanwhile."""
        server = self.servers.get(key)
        if server is not None and server.metadata.deletion_timestamp is None:
            await self._apply(server)
        return Done()

    async def _apply(self, server: Server) -> None:
        outcome = rules.judge(self.rules.items(), server, self._keys)
        if outcome.taints == server.spec.taints and not outcome.annotations:
            return
        body = {
            "metadata": {
                "resourceVersion": server.metadata.resource_version, "annotations": outcome.annotations or {},
            },
            "spec": {"taints": [msgspec.to_builtins(one) for one in outcome.taints] or None},
        }  # fmt: skip
        kind = self.context.kinds.server
        self.servers.observe(await self.context.client.patch(kind, server.metadata.name, body))

    async def reconcile_rule(self, key: Key) -> Result:
        """Say whether the rule can be applied; take its taint from all servers before it goes. Raises Conflict."""
        rule = self.rules.get(key)
        if rule is None:
            return Done()
        if rule.metadata.deletion_timestamp is not None:
            await self._end(rule)
            return Done()
        scope = StatusScope(
            self.context, self.context.kinds.readiness_rule, self.rules, rule, ServerReadinessRuleStatus()
        )
        finalizers = list(rule.metadata.finalizers)
        if self._keys.finalizer not in finalizers:
            await scope.patch({"metadata": {"finalizers": [*finalizers, self._keys.finalizer]}})
        problem = rules.problem(rule)
        scope.state("Error" if problem else "Active", problem)
        scope.report("Valid", not problem, "Invalid" if problem else "Valid", problem or "the rule is applied")
        await scope.commit()
        return Done()

    async def _end(self, rule: ServerReadinessRule) -> None:
        if self._keys.finalizer not in rule.metadata.finalizers:
            return
        for server in self._touched(rule):
            await self._apply(server)
        await remove_finalizer(self.context.client, self.context.kinds.readiness_rule, rule, self._keys.finalizer)

    def _touched(self, rule: ServerReadinessRule) -> Iterable[Server]:
        """Servers that the rule has tainted, and those that it selected and another operator may have tainted."""
        alive = msgspec.structs.replace(rule, metadata=msgspec.structs.replace(rule.metadata, deletion_timestamp=None))
        for server in self.servers.items():
            if rule.metadata.name in self._keys.tainting(server) or rules.selects(alive, server):
                yield server


def setup_readiness(context: Context, runtime: Runtime, *, workers: int = 4) -> ServerReadinessReconciler:
    """Add the two controllers of readiness rules."""
    kinds = context.kinds
    found: Informer[ServerReadinessRule] = runtime.informer(kinds.readiness_rule)
    servers: Informer[Server] = runtime.informer(kinds.server)
    reconciler = ServerReadinessReconciler(context, found, servers)
    each = runtime.controller("readiness", reconciler.reconcile_server, workers=workers)
    each.watches(servers, predicate=_says_more)
    each.watches(found, lambda _: map(key_of, servers.items()), spec_or_metadata_changed)
    runtime.controller("serverreadinessrule", reconciler.reconcile_rule, workers=1).watches(
        found, predicate=spec_or_metadata_changed
    )
    return reconciler


def _says_more(old: Server | None, new: Server | None) -> bool:
    """Whether something changed that rules look at: most of what a server's status says is not."""
    if old is None or new is None:
        return True
    return _looked_at(old) != _looked_at(new)


def _looked_at(server: Server) -> tuple[object, ...]:
    meta = server.metadata
    found = {one.type: one.status for one in server.status.conditions}
    return meta.uid, dict(meta.labels), dict(meta.annotations), server.spec.taints, found


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API."""
    return (
        *follows(kinds.readiness_rule, kinds.server, why="servers are tainted until they are ready"),
        Permission(kinds.server, ("patch",), "taints servers that are not ready"),
        Permission(kinds.readiness_rule, ("patch",), "keeps its finalizer until no server has its taint"),
        Permission(kinds.readiness_rule, ("patch",), "says whether a rule is applied", "status"),
    )
