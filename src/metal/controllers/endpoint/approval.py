"""Creates the BMC object of a device that waits for an approval, before anything is sent to its address."""

from metal.api.endpoint import Endpoint
from metal.controllers.endpoint.enrolment import Enrolment, bmc_manifest
from metal.controllers.endpoint.mac_prefixes import Prefix
from metal.controllers.endpoint.scope import EndpointDeps
from metal.controllers.shared.access.enrolment_policy import APPROVED, PENDING
from metal.kube.meta.objects import Key


async def is_awaited(deps: EndpointDeps, enrolment: Enrolment, endpoint: Endpoint, prefix: Prefix) -> bool:
    """Whether an approval is missing; creates the BMC object that shows it. Raises ApiError."""
    name, policy, kind = endpoint.metadata.name, deps.defaults.policy, deps.context.kinds.bmc
    required = policy.first_value(endpoint.spec.mac_address) == PENDING
    bmc = deps.bmcs.get(Key(name))
    if bmc is None:
        if required:
            await enrolment.create_bmc(endpoint, bmc_manifest(name, prefix, ""))
        return required
    if not policy.is_pending(bmc.metadata.annotations):
        return False
    if not required:  # the configuration was changed
        body = {
            "metadata": {
                "annotations": {policy.annotation: APPROVED}, "resourceVersion": bmc.metadata.resource_version
            }
        }  # fmt: skip
        deps.bmcs.observe(await deps.context.client.patch(kind, name, body))
    return required
