"""Keeps BMCSecrets tidy: plain text goes into data, and a condition says whether the credentials are complete."""

import base64

from metal.api.bmc import BMCSecret, BMCSecretStatus
from metal.api.kinds import Kinds
from metal.controllers.shared.bmc_endpoint import Problem, credentials
from metal.controllers.shared.predicates import spec_or_metadata_changed
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.controller.controller import Controller, Done, Result
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows


class BMCSecretReconciler:
    """Folds stringData into data, as a Secret does by itself, and reports missing keys."""

    def __init__(self, context: Context, runtime: Runtime) -> None:
        self.context = context
        self.secrets: Informer[BMCSecret] = runtime.informer(context.kinds.bmc_secret)

    async def reconcile(self, key: Key) -> Result:
        """One step for one BMCSecret."""
        secret = self.secrets.get(key)
        if secret is None or secret.metadata.deletion_timestamp is not None:
            return Done()
        if secret.metadata.annotations.get(self.context.kinds.key("operation")) == "ignore":
            return Done()
        kind = self.context.kinds.bmc_secret
        scope = StatusScope(self.context, kind, self.secrets, secret, BMCSecretStatus())
        if secret.string_data and not secret.immutable:
            await scope.patch(_folded(secret))
        self._judge(scope)
        await scope.commit()
        return Done()

    @staticmethod
    def _judge(scope: StatusScope[BMCSecret]) -> None:
        found = credentials(scope.name, scope.obj)
        if isinstance(found, Problem):
            scope.state("Error", found.message)
            scope.report("Ready", False, found.reason, found.message)
            return
        scope.state("Ready")
        if scope.obj.string_data:
            text = (
                "complete, but in plain text: an immutable BMCSecret cannot be tidied, so write data when creating it"
            )
            scope.condition("Ready", True, "PlainText", text)
        else:
            scope.condition("Ready", True, "Complete", "user name and password are there")


def _folded(secret: BMCSecret) -> dict[str, object]:
    """A merge patch that moves stringData into data; as in a Secret, stringData wins over data."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in secret.string_data.items()}
    return {"data": data, "stringData": None}


def setup(reconciler: BMCSecretReconciler, runtime: Runtime) -> Controller:
    """Register the reconciler with its BMCSecrets."""
    controller = runtime.controller("bmcsecret", reconciler.reconcile)
    controller.watches(reconciler.secrets, predicate=spec_or_metadata_changed)
    return controller


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """What the reconciler does with the API."""
    return (
        *follows(kinds.bmc_secret, why="credentials are kept tidy"),
        Permission(kinds.bmc_secret, ("patch",), "moves plain text into data"),
        Permission(kinds.bmc_secret, ("patch",), "says whether credentials are complete", "status"),
    )
