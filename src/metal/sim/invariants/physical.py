"""Machines and drives, independent of the objects that describe them: one tenant, and no data of a former one.

The simulator's events are replayed: which system runs on a machine, and whose data is on each drive, by its serial
number. A system belongs to the claim whose Ignition it was booted with: its host name is the name of the Secret in
`spec.ignitionSecretRef`. Histories whose Ignitions have other host names are not judged here. Objects are read only for
what the owner requests: whether the claim exists, and the power and boot generation in its spec.

An administrator's decision ends the protection of the data on a machine: the operations `accept-owed-drives` and
`accept-owed-sanitization`. That of one claim ends when the open record of its outstanding erasure is deleted.
"""

from dataclasses import dataclass, field
from datetime import datetime

from metal.api.claim import ServerClaim
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server, State
from metal.controllers.server.tenancy import owed_drives, sanitization_result
from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import LONG_AGO, PASS, STARTS, STOPS, Entry, World, replay, violation

_RESTARTS = frozenset({"GracefulRestart", "ForceRestart", "PowerCycle", "PushPowerButton"})
_OURS = frozenset({"probe", "sanitizer"})
"""Systems that the operator boots for itself."""
_ACCEPTS = (owed_drives.ACCEPT, sanitization_result.ACCEPT)


@dataclass
class _Tenant:
    """The claim whose system was booted on a machine from the network."""

    uid: str
    name: str
    machine: str
    generation: int
    """Boot generation that the claim requested when its system started."""


@dataclass
class _Machines:
    """Machines and drives at one moment."""

    running: dict[str, _Tenant] = field(default_factory=dict)
    """Whose system runs on a machine."""
    held: dict[str, _Tenant] = field(default_factory=dict)
    """The last tenant of a machine; also while it is off."""
    data: dict[str, _Tenant] = field(default_factory=dict)
    """Whose data is on a drive, by its serial number."""
    drives: dict[str, list[str]] = field(default_factory=dict)
    claims: dict[str, list[ServerClaim]] = field(default_factory=dict)
    """All claims so far, by the name of the Secret with their Ignition."""
    living: dict[str, ServerClaim] = field(default_factory=dict)
    """Claims that exist and are not being deleted, by UID."""
    changed: dict[str, datetime] = field(default_factory=dict)

    def owner(self, entry: MachineEvent, world: World) -> _Tenant | None:
        """The tenant whose system this event starts; None when its hostname names no claim."""
        hostname = str(entry.details.get("hostname", ""))
        known = self.claims.get(hostname, []) if hostname else []
        if not known:
            return None
        window = world.windows.get(entry.machine)
        found = next((one for one in known if window is not None and one.metadata.uid == window.claim_uid), known[-1])
        claim = self.living.get(found.metadata.uid, found)
        return _Tenant(found.metadata.uid, found.metadata.name, entry.machine, claim.spec.boot_generation)

    def lives(self, tenant: _Tenant) -> bool:
        """Whether the claim exists and is not being deleted."""
        return tenant.uid in self.living

    def apply(self, entry: Entry, world: World) -> None:
        """Apply one entry."""
        if isinstance(entry, MachineEvent):
            self._apply_event(entry, world)
        elif entry.kind == "ServerClaim":
            self._apply_claim(entry, world)
        elif entry.kind == "SanitizationEvidence" and entry.obj is None:
            self._forget(world.evidence.get(entry.name))
        elif entry.kind == "Server" and entry.obj is not None and _is_accepted(entry.obj):
            self.held.pop(entry.obj.uuid, None)
            self.running.pop(entry.obj.uuid, None)
            for serial in self.drives.get(entry.obj.uuid, []):
                self.data.pop(serial, None)

    def _forget(self, record: SanitizationEvidence | None) -> None:
        """The record that was deleted: open, it is all that connects the machine with the claim."""
        if record is None or record.status.phase:
            return
        for kept in (self.held, self.running, self.data):
            for key in [key for key, tenant in kept.items() if tenant.uid == record.spec.claim_uid]:
                del kept[key]

    def _apply_claim(self, entry: ObjectChange, world: World) -> None:
        old = world.claims.get((entry.namespace, entry.name))
        if old is not None and (entry.obj is None or entry.obj.metadata.deletion_timestamp):
            self.living.pop(old.metadata.uid, None)
        claim: ServerClaim | None = entry.obj
        if claim is None or claim.metadata.deletion_timestamp:
            return
        uid, secret = claim.metadata.uid, claim.spec.ignition_secret_ref
        if old is None or old.metadata.generation != claim.metadata.generation:
            self.changed[uid] = entry.at
        self.living[uid] = claim
        known = self.claims.setdefault(secret.name if secret is not None else "", [])
        if all(one.metadata.uid != uid for one in known):
            known.append(claim)

    def _apply_event(self, entry: MachineEvent, world: World) -> None:
        machine, details = entry.machine, entry.details
        if entry.what == "drives":
            self.drives[machine] = list(details["serials"])
        elif entry.what == "mainboard":
            self._replace_mainboard(machine)
        elif entry.what == "power" and details["state"] == "Off":
            self.running.pop(machine, None)
        elif entry.what == "disk":
            self.data.pop(str(details.get("serial", "")), None)
        elif entry.what == "os" and "drives" in details:
            self.drives[machine] = list(details["drives"])
            self._start(entry, world)

    def _replace_mainboard(self, machine: str) -> None:
        """With the tenant's drive elsewhere, nothing identifies the machine as the tenant's any more."""
        tenant, drives = self.held.get(machine), self.drives.get(machine, [])
        if tenant is not None and all(self.data.get(serial) is not tenant for serial in drives):
            self.held.pop(machine)
            tenant.machine = ""

    def _start(self, entry: MachineEvent, world: World) -> None:
        machine, kind, drive = entry.machine, entry.details["kind"], entry.details["drives"][0]
        self.running.pop(machine, None)
        tenant = self.owner(entry, world) if kind == "tenant" else self.data.get(drive) if kind == "disk" else None
        if tenant is None:
            return
        if kind == "tenant":
            self.held[machine] = self.data[drive] = tenant
        self.running[machine] = tenant


def _is_accepted(server: Server) -> bool:
    return any(name.endswith("/operation") and word in _ACCEPTS for name, word in server.metadata.annotations.items())


def check_physical(history: History) -> None:
    """One tenant on a machine, powered as its claim requests; no tenant's data is erased or given to another one.

    A machine is taken from no claim that exists, and no tenant gets a drive with data of another one. No drive with
    data of a claim that exists is erased. A machine of such a claim is switched on, switched off or restarted only by
    its claim (power, boot generation), an approved maintenance, or an administrator's operation; discovery and erasure
    do not boot it.
    """
    machines = _Machines()
    for entry, world in replay(history):
        if isinstance(entry, MachineEvent) and (problem := _problem(machines, entry, world)):
            raise violation(history, entry, problem, machine=entry.machine)
        machines.apply(entry, world)


def _problem(machines: _Machines, entry: MachineEvent, world: World) -> str:
    kind = entry.details.get("kind")
    if entry.what == "os" and kind in _OURS:
        return _borrowed(machines, entry, world)
    if entry.what == "os" and kind == "tenant":
        return _taken(machines, entry, world)
    if entry.what == "disk":
        return _erased(machines, entry)
    if entry.what == "reset":
        judge = _switched if entry.details.get("power") == "On" else _started
        return judge(machines, entry, world)
    return ""


def _borrowed(machines: _Machines, entry: MachineEvent, world: World) -> str:
    """A system of the operator itself on a tenant's machine, which may have been off."""
    held = machines.held.get(entry.machine)
    if held is None or not machines.lives(held) or _operated(entry, world):
        return ""
    return f"a {entry.details['kind']} was booted on a machine of claim {held.name}, which exists"


def _taken(machines: _Machines, entry: MachineEvent, world: World) -> str:
    tenant, held = machines.owner(entry, world), machines.held.get(entry.machine)
    if tenant is None:
        return ""
    begun = f"the system of claim {tenant.name} started on a machine"
    if held is not None and held.uid != tenant.uid and machines.lives(held):
        return f"{begun} of claim {held.name}, which exists"
    for serial in entry.details.get("drives", []):
        left = machines.data.get(serial)
        if left is not None and left.uid != tenant.uid:
            which = "which exists" if machines.lives(left) else "which is deleted"
            return f"{begun} whose drive {serial} has data of claim {left.name}, {which}"
    return ""


def _erased(machines: _Machines, entry: MachineEvent) -> str:
    serial = str(entry.details.get("serial", ""))
    left = machines.data.get(serial)
    if left is None or not machines.lives(left):
        return ""
    return f"drive {serial} with data of claim {left.name}, which exists, was erased"


def _switched(machines: _Machines, entry: MachineEvent, world: World) -> str:
    kind, tenant = str(entry.details["type"]), machines.running.get(entry.machine)
    if tenant is None or kind not in STOPS | _RESTARTS or tenant.machine != entry.machine:
        return ""
    if not machines.lives(tenant) or _requested(machines, tenant, entry, world, "Off"):
        return ""
    return f"{kind} reached a machine that runs the system of claim {tenant.name}, which did not request it"


def _started(machines: _Machines, entry: MachineEvent, world: World) -> str:
    kind, held = str(entry.details["type"]), machines.held.get(entry.machine)
    if held is None or kind not in STARTS or not machines.lives(held) or _requested(machines, held, entry, world, "On"):
        return ""
    return f"{kind} reached a machine of claim {held.name}, which requested it to be off"


def _requested(machines: _Machines, tenant: _Tenant, entry: MachineEvent, world: World, power: str) -> bool:
    """Whether the claim asks for this power or for another boot, or something else than the claim may act."""
    claim = machines.living[tenant.uid]
    if claim.spec.power == power or claim.spec.boot_generation > tenant.generation:
        return True
    if entry.at - machines.changed.get(tenant.uid, LONG_AGO) < PASS:
        return True  # a reconcile that began before the change may still act
    return _operated(entry, world)


def _operated(entry: MachineEvent, world: World) -> bool:
    """Whether a maintenance or an administrator's operation acts on the machine."""
    return any(_is_operated(server) for server in world.servers.values() if server.uuid == entry.machine)


def _is_operated(server: Server) -> bool:
    status = server.status
    if server.spec.server_maintenance_ref is not None or status.state in (State.MAINTENANCE, State.PARKED):
        return True
    asked, request = status.operation_request, status.power_request
    return asked is not None or (request is not None and request.reason == "parking")
