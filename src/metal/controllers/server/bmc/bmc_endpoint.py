"""Finds the way to a Server's BMC: through its BMC object, or inline."""

from metal.api.bmc import BMCSecret
from metal.api.common import LocalRef
from metal.api.endpoint import Endpoint
from metal.bmc.pool import BMCEndpoint
from metal.controllers.server.scope import Scope
from metal.controllers.shared.bmc_endpoint import Problem, endpoint_for_bmc, endpoint_for_inline
from metal.kube.meta.objects import Key


def endpoint_of(scope: Scope) -> BMCEndpoint | Problem:
    """The access, or what is missing for one."""
    deps, spec = scope.deps, scope.server.spec
    if spec.bmc_ref is None:
        inline = spec.bmc
        endpoint = _endpoint(scope, inline.endpoint_ref if inline else None)
        secret = _secret(scope, inline.bmc_secret_ref.name if inline else "")
        return endpoint_for_inline(scope.server, endpoint, secret, deps.access_defaults)
    bmc = deps.bmcs.get(Key(spec.bmc_ref.name))
    if bmc is None:
        return Problem("BMCNotFound", f"BMC {spec.bmc_ref.name} does not exist: create it or correct spec.bmcRef")
    endpoint = _endpoint(scope, bmc.spec.endpoint_ref)
    return endpoint_for_bmc(bmc, endpoint, _secret(scope, bmc.spec.bmc_secret_ref.name), deps.access_defaults)


def _endpoint(scope: Scope, ref: LocalRef | None) -> Endpoint | None:
    return scope.deps.endpoints.get(Key(ref.name)) if ref else None


def _secret(scope: Scope, name: str) -> BMCSecret | None:
    return scope.deps.secrets.get(Key(name)) if name else None
