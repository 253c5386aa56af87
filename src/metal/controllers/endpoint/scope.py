"""The dependencies of the Endpoint reconciler."""

from dataclasses import dataclass

from metal.api.bmc import BMC, BMCSecret
from metal.api.endpoint import Endpoint
from metal.bmc.pool import Pool
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.clock_jump import Moments
from metal.controllers.shared.scope import Context, StatusScope
from metal.kube.cache.informer import Informer

BY_ACCESS_MAC = "access-mac"
"""Index of BMCs by the digits of the MAC address in spec.access."""


class EndpointScope(StatusScope[Endpoint]):
    """One pass over one Endpoint."""

    moments = Moments(fields=("since", "credentials_refused_at"))


@dataclass
class EndpointDeps:
    """What all passes share; created once."""

    context: Context
    settings: EndpointSettings
    defaults: BMCEndpointDefaults
    pool: Pool
    prefixes: PrefixFile
    endpoints: Informer[Endpoint]
    bmcs: Informer[BMC]
    secrets: Informer[BMCSecret]
