"""Adds the Endpoint controller to a runtime: its informers, its indexes and the changes that cause a pass."""

from collections.abc import Iterable

from metal.api.bmc import BMC
from metal.api.endpoint import Endpoint
from metal.bmc.pool import Pool
from metal.controllers.endpoint.mac_prefixes import normalise
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.controllers.endpoint.reconciler import EndpointReconciler
from metal.controllers.endpoint.scope import BY_ACCESS_MAC, EndpointDeps
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.scope import Context
from metal.kube.controller.controller import Controller
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of
from metal.machine import directory


def setup_endpoints(
    context: Context,
    runtime: Runtime,
    pool: Pool,
    prefixes: PrefixFile,
    defaults: BMCEndpointDefaults,
    settings: EndpointSettings,
) -> EndpointReconciler:
    """Add the Endpoint controller, and the task that reads the MAC prefix file again when it changes."""
    kinds = context.kinds
    deps = EndpointDeps(
        context, settings, defaults, pool, prefixes, endpoints=runtime.informer(kinds.endpoint),
        bmcs=runtime.informer(kinds.bmc), secrets=runtime.informer(kinds.bmc_secret),
    )  # fmt: skip
    deps.endpoints.add_index(directory.BY_MAC, directory.by_mac)
    deps.bmcs.add_index(BY_ACCESS_MAC, _mac_of_bmc)
    reconciler = EndpointReconciler(deps)
    controller = runtime.controller(
        "endpoint", reconciler.reconcile, workers=settings.workers, deadline=settings.contact_timeout * 2 + 10
    )
    controller.watches(deps.endpoints, lambda endpoint: _with_same_mac(deps, endpoint), spec_or_metadata_changed)
    controller.watches(deps.bmcs, predicate=spec_or_metadata_changed)
    controller.watches(deps.secrets, predicate=spec_or_metadata_changed)
    prefixes.on_change(lambda: _queue_all(deps, controller))
    runtime.background("mac-prefixes", prefixes.run)
    return reconciler


def _mac_of_bmc(bmc: BMC) -> Iterable[str]:
    digits = normalise(bmc.spec.access.mac_address) if bmc.spec.access else ""
    return (digits,) if digits else ()


def _with_same_mac(deps: EndpointDeps, endpoint: Endpoint) -> list[Key]:
    """The Endpoint, and those with the same MAC address: when one is deleted, another may become a BMC."""
    return [key_of(endpoint), *map(key_of, directory.with_mac(deps.endpoints, endpoint))]


def _queue_all(deps: EndpointDeps, controller: Controller) -> None:
    for endpoint in deps.endpoints.items():
        controller.queue.add(key_of(endpoint))
