"""The wait of a Server whose CRD lacks fields of this operator: the API drops them from its status."""

from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue


def await_crds(scope: Scope) -> Requeue:
    """Wait for CRDs: with those of another operator the API drops the boot in progress and the tenant."""
    text = "CRDs with this operator's fields: the API drops them from the server's status. Apply the CRDs (config/crd)"
    return scope.wait(WaitFor.CUSTOM_RESOURCE_DEFINITIONS, text)
