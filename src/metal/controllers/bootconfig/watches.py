"""Adds the ServerBootConfiguration controller to a runtime: its informers and the changes that cause a pass."""

from collections.abc import Iterable

from metal.api.claim import ServerBootConfiguration
from metal.api.server import Server
from metal.boot.images import Images
from metal.controllers.bootconfig.reconciler import BootConfigurationReconciler
from metal.controllers.bootconfig.scope import BY_SERVER, Deps
from metal.controllers.shared.scope import Context
from metal.kube.controller.controller import owner_keys
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.objects import Key, key_of
from metal.machineapi.bootserver.settings import BootSettings


def setup_boot_configs(
    context: Context, runtime: Runtime, images: Images, settings: BootSettings, *, workers: int = 16
) -> BootConfigurationReconciler:
    """Add the ServerBootConfiguration controller."""
    kinds = context.kinds
    deps = Deps(
        context, configs=runtime.informer(kinds.boot_config), servers=runtime.informer(kinds.server),
        children=runtime.informer(kinds.ipxe), images=images, settings=settings,
    )  # fmt: skip
    deps.configs.add_index(BY_SERVER, _server_of)
    reconciler = BootConfigurationReconciler(deps)
    controller = runtime.controller("serverbootconfiguration", reconciler.reconcile, workers=workers)
    reconciler.wake = controller.queue.add

    def of_server(server: Server) -> Iterable[Key]:
        return map(key_of, deps.configs.by_index(BY_SERVER, server.metadata.name))

    controller.watches_own(deps.configs, context.own_writes(kinds.boot_config))

    def boot_parameters_changed(old: Server | None, new: Server | None) -> bool:
        """Whether what the IPXEBootConfig contains changed: UUID, addresses, or the image's architecture."""
        if old is None or new is None:
            return True
        if deps.architecture(old) != deps.architecture(new):
            return True
        return old.uuid != new.uuid or old.status.network_interfaces != new.status.network_interfaces

    controller.watches(deps.servers, of_server, boot_parameters_changed)
    controller.watches(deps.children, owner_keys(kinds.boot_config))
    return reconciler


def _server_of(config: ServerBootConfiguration) -> Iterable[str]:
    """Index of boot configurations by the name of their server."""
    return (config.spec.server_ref.name,)
