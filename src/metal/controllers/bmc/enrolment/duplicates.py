"""Two BMC objects for one BMC: one is in charge of it, the other sends nothing to it.

Two objects are the same BMC when they have the same address and port (`hold`, before the BMC is contacted), or when the
managers that they show have the same UUID, or the same serial number without UUIDs, and one shows a system whose Server
belongs to the other (`compare`, after the systems were read; some vendors ship managers with equal UUIDs, which show
different systems). The object with the Servers that have a tenancy is in charge, else the one with Servers, else one
that was connected, else one whose credentials were not refused, else the oldest: the right to create BMC objects is not
enough to keep a BMC from its own object. The other one has condition DuplicateBMC with the name of the first; it is
contacted again every RECHECK seconds, if their addresses differ, to find out whether that is still so. One machine gets
one Server in any case (`servers`); this only saves the BMC the second client.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

from metal.api.bmc import BMC
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.access.secret_use import NOT_ALLOWED
from metal.controllers.shared.indexes import BY_BMC, BY_IDENTITY
from metal.kube.controller.controller import Requeue, Result
from metal.kube.meta.conditions import find, is_true
from metal.machine.charge import has_tenancy
from metal.machine.identity import Identity, canonical_uuid, compare, identity_of_system, system_serial

CONDITION = "DuplicateBMC"
OTHER_IN_CHARGE, IN_CHARGE = "OtherBMCInCharge", "InCharge"
"""Reasons of the condition."""
BY_CONTROLLER = "bmc-identity"
"""Index of BMCs by address and port, UUID and serial number."""
RECHECK = 600.0
"""Seconds between two contacts with a BMC at another address that another object is in charge of."""
_NEVER = datetime.max.replace(tzinfo=UTC)


def bmc_keys(bmc: BMC) -> Iterable[str]:
    """Index of BMCs."""
    address = _address(bmc)
    return (*((address,) if address else ()), *_identity(bmc).keys)


async def hold(scope: Scope) -> Result | None:
    """End the pass before anything is sent when another object is known to be in charge of this BMC."""
    address = _address(scope.obj)
    rivals = _named(scope, (address,)) if address else []
    known = find(scope.status.conditions, CONDITION)
    if known is not None and known.status == "True" and known.reason == OTHER_IN_CHARGE and not _is_due(scope):
        rivals += _same_manager(scope)
    chosen = _in_charge(scope, [scope.obj, *rivals])
    if rivals and chosen.metadata.name != scope.name:
        return _inert(scope, chosen)
    return None


async def compare_managers(scope: Scope) -> Result | None:
    """End the pass when another object in charge shows the same manager and system; report duplicates, or their end."""
    scope.memo.compared_at = asyncio.get_running_loop().time()
    address = _address(scope.obj)
    rivals = [*(_named(scope, (address,)) if address else []), *_same_manager(scope)]
    chosen = _in_charge(scope, [scope.obj, *rivals])
    if chosen.metadata.name != scope.name and _shows_server_of(scope, chosen):
        return _inert(scope, chosen)
    others = sorted({one.metadata.name for one in rivals if _names(one, scope.name)})
    if others:
        text = f"BMC {', '.join(others)} describes the same BMC, and sends nothing to it: delete it"
        scope.report(CONDITION, True, IN_CHARGE, text)
    elif find(scope.status.conditions, CONDITION) is not None:
        scope.condition(CONDITION, False, "NoDuplicate", "no other BMC object describes this BMC")
    return None


def _inert(scope: Scope, chosen: BMC) -> Result:
    name = chosen.metadata.name
    text = (
        f"BMC {name} describes the same BMC and is in charge of it; nothing is sent to it for BMC {scope.name}. If "
        f"{scope.name} is to replace {name}, set spec.bmcRef.name of its Servers to {scope.name}; else delete BMC "
        f"{scope.name}"
    )
    scope.state("Pending", text)
    scope.report(CONDITION, True, OTHER_IN_CHARGE, text)
    scope.condition("Ready", False, CONDITION, text)
    return Requeue(scope.context.jitter(scope.deps.settings.interval))


def _is_due(scope: Scope) -> bool:
    """Whether this process has not compared the managers for a while."""
    return asyncio.get_running_loop().time() - scope.memo.compared_at >= RECHECK


def _address(bmc: BMC) -> str:
    ip = (bmc.spec.access.ip if bmc.spec.access is not None else bmc.status.ip) or ""
    return f"{ip} {bmc.spec.protocol.port}" if ip else ""


def _identity(bmc: BMC) -> Identity:
    status = bmc.status
    return Identity(uuid=canonical_uuid(status.uuid), serial=system_serial(status.manufacturer, status.serial_number))


def _pending(scope: Scope) -> Identity:
    status = scope.status
    return Identity(uuid=canonical_uuid(status.uuid), serial=system_serial(status.manufacturer, status.serial_number))


def _named(scope: Scope, keys: Iterable[str]) -> list[BMC]:
    found = {one.metadata.name: one for key in keys for one in scope.deps.bmcs.by_index(BY_CONTROLLER, key)}
    return [found[name] for name in sorted(found) if name != scope.name]


def _same_manager(scope: Scope) -> list[BMC]:
    mine = _pending(scope)
    return [one for one in _named(scope, mine.keys) if compare(mine, _identity(one)).exclusive]


def _in_charge(scope: Scope, bmcs: list[BMC]) -> BMC:
    def rank(bmc: BMC) -> tuple[bool, bool, bool, bool, datetime, str]:
        servers = scope.deps.servers.by_index(BY_BMC, bmc.metadata.name)
        created = bmc.metadata.creation_timestamp or _NEVER
        unused = not any(map(has_tenancy, servers)), not servers, not _was_connected(bmc), _is_refused(bmc)
        return *unused, created, bmc.metadata.uid

    return min(bmcs, key=rank)


def _was_connected(bmc: BMC) -> bool:
    return bool(bmc.status.connected_secret) or is_true(bmc.status.conditions, "Ready")


def _is_refused(bmc: BMC) -> bool:
    known = find(bmc.status.conditions, "Ready")
    return bmc.status.refused is not None or (known is not None and known.reason == NOT_ALLOWED)


def _shows_server_of(scope: Scope, other: BMC) -> bool:
    """Whether a system of this BMC is the machine of a Server of the other one."""
    for system in scope.systems:
        key = identity_of_system(system.uuid, system.manufacturer, system.serial_number).key
        for server in scope.deps.servers.by_index(BY_IDENTITY, key) if key else ():
            if server.spec.bmc_ref is not None and server.spec.bmc_ref.name == other.metadata.name:
                return True
    return False


def _names(bmc: BMC, name: str) -> bool:
    """Whether this BMC says that the named one is in charge."""
    known = find(bmc.status.conditions, CONDITION)
    return known is not None and known.status == "True" and f"BMC {name} " in known.message
