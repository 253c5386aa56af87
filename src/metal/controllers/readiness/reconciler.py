"""Applies ServerReadinessRules: a pass for a Server evaluates all rules; a pass for a rule validates or removes it."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from metal.api.kinds import Kinds
from metal.api.readiness import ServerReadinessRule, ServerReadinessRuleStatus
from metal.api.server import Server
from metal.controllers.readiness import rules
from metal.controllers.shared.reconciled import refusal, refusals, reporting
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.client.errors import ApiError, Conflict, NotFound, TooManyRequests
from metal.kube.client.retrying import UNCERTAIN
from metal.kube.controller.controller import Done, Result
from metal.kube.controller.finalizers import remove_finalizer
from metal.kube.meta.objects import Key
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
        """Set the taints of the rules that the server does not satisfy. Raises Conflict when it changed in between."""
        server = self.servers.get(key)
        if server is not None and server.metadata.deletion_timestamp is None:
            try:
                await self._apply(server)
            except (Conflict, NotFound, TooManyRequests, *UNCERTAIN):
                raise
            except ApiError as exc:
                self._report(server, exc)
                raise
        return Done()

    def _report(self, server: Server, exc: ApiError) -> None:
        """An Event on each rule of the server: the API refuses the change of its taints."""
        name, kind = server.metadata.name, self.context.kinds.readiness_rule
        reason, message = refusal(exc, f"to change the taints of Server {name}")
        for rule in self.rules.items():
            if rule.metadata.name in self._keys.tainting(server) or rules.selects(rule, server):
                self.context.recorder.event(rule, kind, "Warning", reason, message)

    async def _apply(self, server: Server) -> None:
        outcome = rules.evaluate(self.rules.items(), server, self._keys)
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
        """Report whether the rule is valid; remove the taint of a deleted rule from all servers. Raises Conflict."""
        rule = self.rules.get(key)
        if rule is None:
            return Done()
        scope = StatusScope(
            self.context, self.context.kinds.readiness_rule, self.rules, rule, ServerReadinessRuleStatus()
        )
        if rule.metadata.deletion_timestamp is not None:
            async with refusals(scope):
                await self._finalize(rule)
            return Done()
        async with reporting(scope):
            await self._validate(scope)
        return Done()

    async def _validate(self, scope: StatusScope[ServerReadinessRule]) -> None:
        finalizers = list(scope.obj.metadata.finalizers)
        if self._keys.finalizer not in finalizers:
            await scope.patch({"metadata": {"finalizers": [*finalizers, self._keys.finalizer]}})
        problem = rules.problem(scope.obj)
        scope.state("Error" if problem else "Active", problem)
        scope.report("Valid", not problem, "Invalid" if problem else "Valid", problem or "the rule is applied")

    async def _finalize(self, rule: ServerReadinessRule) -> None:
        if self._keys.finalizer not in rule.metadata.finalizers:
            return
        for server in self._affected_servers(rule):
            await self._apply(server)
        await remove_finalizer(self.context.client, self.context.kinds.readiness_rule, rule, self._keys.finalizer)

    def _affected_servers(self, rule: ServerReadinessRule) -> Iterable[Server]:
        """Servers that the rule has tainted, and those that it selects: the Go operator may have tainted them."""
        undeleted = msgspec.structs.replace(
            rule, metadata=msgspec.structs.replace(rule.metadata, deletion_timestamp=None)
        )
        for server in self.servers.items():
            if rule.metadata.name in self._keys.tainting(server) or rules.selects(undeleted, server):
                yield server


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler."""
    return (
        *follows(kinds.readiness_rule, kinds.server, why="taints servers that do not satisfy a readiness rule"),
        Permission(kinds.server, ("patch",), "sets and removes the taints of readiness rules"),
        Permission(kinds.readiness_rule, ("patch",), "keeps the rule's finalizer until no server has its taint"),
        Permission(kinds.readiness_rule, ("patch",), "reports whether a rule is valid", "status"),
    )
