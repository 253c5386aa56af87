"""One pass over one BMCSecret: moves stringData into data, and reports whether the credentials are complete."""

import base64
from typing import Any

from metal.api.bmc import BMCSecret, BMCSecretStatus
from metal.api.kinds import Kinds
from metal.api.names import IGNORE, OPERATION
from metal.controllers.shared.access.bmc_endpoint import credentials
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.reconciled import reporting
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer
from metal.kube.client.withheld import withheld
from metal.kube.controller.controller import Done, Result
from metal.kube.meta.objects import Key
from metal.kube.meta.permissions import Permission, follows


class _Scope(StatusScope[BMCSecret]):
    """One pass over one BMCSecret; no error that it raises repeats a value."""

    async def commit(self) -> None:
        with withheld():
            await super().commit()

    async def patch(self, changes: dict[str, Any]) -> None:
        with withheld():
            await super().patch(changes)


class BMCSecretReconciler:
    """Moves stringData into data, as the API server does for a Secret, and reports missing keys."""

    def __init__(self, context: Context, secrets: Informer[BMCSecret]) -> None:
        self.context, self.secrets = context, secrets

    async def reconcile(self, key: Key) -> Result:
        """One pass for one BMCSecret."""
        secret = self.secrets.get(key)
        if secret is None or secret.metadata.deletion_timestamp is not None:
            return Done()
        if secret.metadata.annotations.get(self.context.kinds.key(OPERATION)) == IGNORE:
            return Done()
        kind = self.context.kinds.bmc_secret
        scope = _Scope(self.context, kind, self.secrets, secret, BMCSecretStatus())
        async with reporting(scope):
            try:
                if secret.string_data and not secret.immutable:
                    await scope.patch(_move_string_data(secret))
            finally:
                self._report(scope)
        return Done()

    @staticmethod
    def _report(scope: StatusScope[BMCSecret]) -> None:
        found = credentials(scope.name, scope.obj)
        if isinstance(found, Problem):
            scope.state("Error", found.message)
            scope.report("Ready", False, found.reason, found.message)
            return
        scope.state("Ready")
        if scope.obj.string_data:
            text = "complete, but in plain text: create an immutable BMCSecret with data instead of stringData"
            scope.condition("Ready", True, "PlainText", text)
        else:
            scope.condition("Ready", True, "Complete", "username and password are set")


def _move_string_data(secret: BMCSecret) -> dict[str, object]:
    """A merge patch that moves stringData into data; as in a Secret, stringData wins over data."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in secret.string_data.items()}
    return {"data": data, "stringData": None}


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of the reconciler."""
    return (
        *follows(kinds.bmc_secret, why="validates the credentials of BMCs"),
        Permission(kinds.bmc_secret, ("patch",), "moves stringData into data"),
        Permission(kinds.bmc_secret, ("patch",), "reports whether credentials are complete", "status"),
    )
