"""Adds the two controllers of ServerReadinessRules to a runtime: one key a Server, and one key a rule."""

from metal.api.readiness import ServerReadinessRule
from metal.api.server import Server
from metal.controllers.readiness.reconciler import ServerReadinessReconciler
from metal.controllers.shared.scope import Context
from metal.kube.cache.informer import Informer
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import key_of


def setup_readiness(context: Context, runtime: Runtime, *, workers: int = 4) -> ServerReadinessReconciler:
    """Add the two controllers of readiness rules."""
    kinds = context.kinds
    rules: Informer[ServerReadinessRule] = runtime.informer(kinds.readiness_rule)
    servers: Informer[Server] = runtime.informer(kinds.server)
    reconciler = ServerReadinessReconciler(context, rules, servers)
    of_servers = runtime.controller("readiness", reconciler.reconcile_server, workers=workers)
    of_servers.watches(servers, predicate=_evaluated_fields_changed)
    of_servers.watches(rules, lambda _: map(key_of, servers.items()), spec_or_metadata_changed)
    of_rules = runtime.controller("serverreadinessrule", reconciler.reconcile_rule, workers=1)
    of_rules.watches(rules, predicate=spec_or_metadata_changed)
    return reconciler


def _evaluated_fields_changed(old: Server | None, new: Server | None) -> bool:
    """Whether a field changed that rules evaluate; most changes of a Server's status are none."""
    if old is None or new is None:
        return True
    return _evaluated_fields(old) != _evaluated_fields(new)


def _evaluated_fields(server: Server) -> tuple[object, ...]:
    meta = server.metadata
    found = {one.type: one.status for one in server.status.conditions}
    return meta.uid, dict(meta.labels), dict(meta.annotations), server.spec.taints, found
