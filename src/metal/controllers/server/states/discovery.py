"""Discovery: boots the probe once its image is ready, and stores its report."""

import msgspec

from metal.api import names
from metal.api.boot_window import Purpose
from metal.api.claim import ServerBootConfiguration
from metal.api.core import CONFIG_MAP
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.bmc import inventory, reported_interfaces
from metal.controllers.server.netboot import boot
from metal.controllers.server.netboot.progress import described, has_succeeded
from metal.controllers.server.netboot.readiness import await_config
from metal.controllers.server.reasons import ConditionType, Reason
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import owed_drives
from metal.controllers.server.tenancy.adoption import recreated
from metal.kube.client.errors import NotFound
from metal.kube.controller.controller import Requeue
from metal.kube.meta.permissions import Permission, Where
from metal.machine import architecture
from metal.machine.report import known_drives, memory, storages


async def run(scope: Scope) -> Requeue:
    """One step of the discovery boot; Available, powered off, once the report of this boot has arrived."""
    config = scope.boot_config()
    outdated = _outdated(scope, config)
    if config is None or outdated:
        return scope.transition(State.INITIAL, f"{outdated}; discovery restarts")
    if not has_succeeded(scope, config):
        unready = await_config(scope, config)
        if unready is not None:
            return unready
    busy = await boot.network_boot(scope, config, Purpose.DISCOVERY, timeout=scope.settings.discovery_timeout)
    if busy is not None:
        return busy
    try:
        report = await read_report(scope)
    except (NotFound, KeyError, msgspec.DecodeError, msgspec.ValidationError) as exc:
        return scope.fail(Reason.REPORT_LOST, f"the probe's report cannot be read ({exc})")
    foreign = reported_interfaces.check(scope, report)
    if foreign is not None:
        return foreign
    status = scope.status
    scope.set(
        architecture=status.architecture or architecture.of_report(report),
        drives=known_drives(report, status.storages),
        storages=status.storages or storages(report),  # some BMCs report neither
        total_system_memory=status.total_system_memory or memory(report),
    )
    busy = await power.converge(scope, PowerState.OFF, "discovered")
    if busy is not None:
        return busy
    outstanding = await recreated.before_available(scope) or await owed_drives.before_available(scope)
    if outstanding is not None:
        return outstanding
    inventory.record(scope)
    window = scope.status.boot_window
    how = f" ({described(window)})" if window is not None else ""
    scope.condition(ConditionType.DISCOVERED, True, "ProbeReported", f"the probe reported this machine's hardware{how}")
    return scope.transition(State.AVAILABLE, "discovered; the server can be claimed")


def _outdated(scope: Scope, config: ServerBootConfiguration | None) -> str:
    """Why the discovery has to start again; empty if it continues."""
    if config is None or config.metadata.namespace != scope.settings.namespace:
        return "the discovery boot configuration was deleted"
    if reported_interfaces.are_of_unknown_source(scope):
        return "it is not known which network interfaces the BMC shows"
    return "the probe image was changed" if config.spec.image != scope.settings.probe_image else ""


async def read_report(scope: Scope) -> dict[str, object]:
    """The report of the last boot. Raises NotFound, KeyError, msgspec.DecodeError."""
    name = names.inventory_name(scope.name)
    stored = await scope.context.client.get(CONFIG_MAP, name, scope.settings.namespace)
    window = scope.status.boot_window
    if window is None or stored.metadata.annotations.get(scope.context.kinds.key(names.REPORT_BOOT)) != window.id:
        raise KeyError(f"the ConfigMap {name} is from another boot")
    return msgspec.json.decode(stored.data[names.REPORT_KEY], type=dict[str, object])


def required_permissions() -> tuple[Permission, ...]:
    """Permissions of this state. The ConfigMap has the Server's name, which no rule can know in advance."""
    return (Permission(CONFIG_MAP, ("get",), "reads the probe's report", where=Where.HOME),)
