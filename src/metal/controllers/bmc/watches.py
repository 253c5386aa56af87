"""Adds the BMC controller to a runtime: its informers, its indexes and the changes that cause a pass."""

from collections.abc import Iterable
from functools import partial

import msgspec

from metal.api.bmc import BMC, BMCSecret
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.bmc.errors import BMCTimeout, BMCUnreachable
from metal.bmc.pool import Pool
from metal.bmc.shell import Shell
from metal.bmc.ssh import SSHShell
from metal.controllers.bmc.dns_template import Template
from metal.controllers.bmc.enrolment import duplicates
from metal.controllers.bmc.reconciler import BMCReconciler
from metal.controllers.bmc.scope import BY_ENDPOINT, Deps
from metal.controllers.bmc.settings import BMCSettings
from metal.controllers.shared.access import pins, secret_use
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.access.secret_use import BY_SECRET
from metal.controllers.shared.indexes import BY_BMC, BY_IDENTITY, bmc_index, identity_index
from metal.controllers.shared.scope import Context
from metal.kube.client.discovery import Discovery
from metal.kube.controller.controller import owner_keys
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import Key, key_of


def setup_bmcs(
    context: Context,
    runtime: Runtime,
    pool: Pool,
    defaults: BMCEndpointDefaults,
    settings: BMCSettings,
    *,
    shell: Shell | None = None,
    template: Template | None = None,
) -> BMCReconciler:
    """Add the BMC controller."""
    kinds = context.kinds
    deps = Deps(
        context, settings, defaults, pool, shell or SSHShell(), bmcs=runtime.informer(kinds.bmc),
        secrets=runtime.informer(kinds.bmc_secret), endpoints=runtime.informer(kinds.endpoint),
        servers=runtime.informer(kinds.server), discovery=Discovery(context.client), template=template,
    )  # fmt: skip
    deps.bmcs.add_index(BY_SECRET, secret_use.bmc_index)
    deps.servers.add_index(BY_SECRET, secret_use.server_index)
    deps.bmcs.add_index(BY_ENDPOINT, _endpoint_name)
    deps.bmcs.add_index(duplicates.BY_CONTROLLER, duplicates.bmc_keys)
    deps.servers.add_index(BY_BMC, bmc_index)
    deps.servers.add_index(BY_IDENTITY, identity_index(kinds))
    reconciler = BMCReconciler(deps)
    controller = runtime.controller(
        "bmc", reconciler.reconcile, workers=settings.workers, deadline=settings.contact_timeout * 2 + 20
    )
    controller.watches(deps.bmcs, predicate=_needs_pass)
    controller.watches(deps.secrets, lambda secret: _bmcs_of_secret(deps, secret), partial(_secret_changed, kinds))
    controller.watches(deps.endpoints, lambda endpoint: _bmcs_of_endpoint(deps, endpoint), spec_or_metadata_changed)
    controller.watches(deps.servers, owner_keys(kinds.bmc), _system_changed)
    deps.bmcs.add_handler(lambda old, new: _expect_silence(pool, new) if old is None and new is not None else None)
    return reconciler


def _expect_silence(pool: Pool, bmc: BMC) -> None:
    """A BMC that did not answer before this process was started must not occupy a worker first."""
    ready = find(bmc.status.conditions, "Ready")
    if ready is None or ready.status != "False":
        return
    for error in (BMCUnreachable, BMCTimeout):
        if ready.reason == error.reason:
            pool.expect_silence(bmc.metadata.name, error(ready.message))


def _endpoint_name(bmc: BMC) -> Iterable[str]:
    return (bmc.spec.endpoint_ref.name,) if bmc.spec.endpoint_ref else ()


def _bmcs_of_secret(deps: Deps, secret: BMCSecret) -> list[Key]:
    return [key_of(bmc) for bmc in deps.bmcs.by_index(BY_SECRET, secret.metadata.name)]


def _secret_changed(kinds: Kinds, old: BMCSecret | None, new: BMCSecret | None) -> bool:
    """True unless only the status or pins changed, which the pass of one of its BMCs writes."""
    if old is None or new is None:
        return True
    return spec_or_metadata_changed(_without_pins(kinds, old), _without_pins(kinds, new))


def _without_pins(kinds: Kinds, secret: BMCSecret) -> BMCSecret:
    meta = secret.metadata
    notes = pins.without_pins(meta.annotations, kinds)
    return msgspec.structs.replace(secret, metadata=msgspec.structs.replace(meta, annotations=notes))


def _bmcs_of_endpoint(deps: Deps, endpoint: Endpoint) -> list[Key]:
    return [key_of(bmc) for bmc in deps.bmcs.by_index(BY_ENDPOINT, endpoint.metadata.name)]


def _needs_pass(old: BMC | None, new: BMC | None) -> bool:
    """True unless only the status changed; `metalctl console` pins or refuses the host key in the status."""
    return spec_or_metadata_changed(old, new) or (
        old is not None and new is not None and _host_key(old) != _host_key(new)
    )


def _host_key(bmc: BMC) -> tuple[str, str]:
    pin = bmc.status.ssh_host_key
    return (pin.sha256, pin.refused) if pin is not None else ("", "")


def _system_changed(old: Server | None, new: Server | None) -> bool:
    """True when a Server was deleted or has another UUID: its system may need a new Server.

    A new Server causes no pass: the BMC's own pass created it, or it was listed at the start, when each BMC gets a
    pass.
    """
    if old is None:
        return False
    return new is None or old.uuid != new.uuid
