"""A machine is powered on for a network boot only when everything that it will fetch is ready."""

from datetime import datetime

from metal.api.server import Server, State
from metal.machine import tenancy
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import LONG_AGO, PASS, STARTS, World, replay, violation


def check_power_after_configuration(history: History) -> None:
    """A machine is powered on for a network boot only after its boot configuration is Ready.

    A reconcile that began while it was Ready may still act until its deadline.
    """
    ready: dict[tuple[str, str], datetime] = {}
    for entry, world in replay(history):
        if isinstance(entry, ObjectChange) and entry.kind == "ServerBootConfiguration":
            before = world.configs.get((entry.namespace, entry.name))
            if before is not None and before.status.state == "Ready":
                ready[entry.namespace, entry.name] = entry.at
        if not isinstance(entry, MachineEvent) or entry.what != "reset" or entry.details["type"] not in STARTS:
            continue
        server = world.server(entry.machine)
        if server is None or not _boots_from_network(server) or _ready(server, world):
            continue
        ref = server.spec.boot_configuration_ref
        if ref is not None and entry.at - ready.get((ref.namespace, ref.name), LONG_AGO) < PASS:
            continue
        name = server.metadata.name
        raise violation(
            history, entry, f"{entry.details['type']} reached server {name} before its boot configuration was Ready",
            server=name, machine=entry.machine,
        )  # fmt: skip


def _boots_from_network(server: Server) -> bool:
    if server.status.state in (State.DISCOVERY, State.CLEANUP):
        return True
    boot = tenancy.of(server).boot
    owed = boot is None or boot.booted_at is None or boot.requested_generation > boot.boot_generation
    return server.status.state == State.RESERVED and owed


def _ready(server: Server, world: World) -> bool:
    config = world.config(server.spec.boot_configuration_ref)
    return config is not None and config.status.state == "Ready"
