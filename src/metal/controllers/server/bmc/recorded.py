"""The BMC as the Server controller uses it: operations have names, and their failures are recorded until they succeed.

`connect.run` puts it around the client of the pool for one pass. A request of an operation that failed a short time ago
is not sent (`OperationPaused`). Before the first change at an address, or of a path, the system there is read and
compared with the Server, because an address may lead to another machine from one pass to the next.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from metal.api.server import FailingOperation
from metal.bmc.calls import WRITES
from metal.bmc.errors import BMCError
from metal.bmc.pool import BMC
from metal.bmc.power import ResetType
from metal.bmc.systems import SystemInfo
from metal.controllers.server import system_check
from metal.controllers.server.bmc import failing
from metal.controllers.server.reasons import CONTACT, Operation
from metal.controllers.server.scope import Scope
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import Key

_NAMES: Mapping[str, Operation] = {
    "system": Operation.READ_SYSTEM,
    "systems": Operation.READ_SYSTEMS,
    "inventory": Operation.READ_INVENTORY,
    "bios_attributes": Operation.READ_FIRMWARE,
    "is_bios_reset_pending": Operation.READ_FIRMWARE,
    "is_tpm_clear_pending": Operation.READ_FIRMWARE,
    "power_on": Operation.POWER_ON,
    "power_off": Operation.POWER_OFF,
    "reset": Operation.RESET,
    "set_network_boot": Operation.SET_BOOT_OVERRIDE,
    "clear_boot_override": Operation.CLEAR_BOOT_OVERRIDE,
    "set_boot_order": Operation.SET_BOOT_ORDER,
    "set_indicator_led": Operation.SET_INDICATOR_LED,
    "reset_bios": Operation.RESET_BIOS,
    "clear_tpm": Operation.CLEAR_TPM,
    "offered_methods": Operation.READ_BOOT_METHODS,
    "media_slots": Operation.READ_BOOT_METHODS,
    "http_boot": Operation.READ_BOOT_METHODS,
    "asset_tags": Operation.READ_BOOT_METHODS,
    "secure_boot": Operation.READ_BOOT_METHODS,
    "insert_medium": Operation.INSERT_MEDIUM,
    "eject_medium": Operation.EJECT_MEDIUM,
    "set_medium_boot": Operation.SET_BOOT_OVERRIDE,
    "set_http_boot": Operation.SET_HTTP_BOOT,
    "clear_http_boot": Operation.CLEAR_HTTP_BOOT,
    "set_asset_tag": Operation.SET_ASSET_TAG,
}
_RESETS: Mapping[ResetType, Operation] = {
    ResetType.GRACEFUL_SHUTDOWN: Operation.POWER_OFF,
    ResetType.FORCE_OFF: Operation.FORCE_POWER_OFF,
}


class RecordedOperations:
    """Implements metal.bmc.pool.BMC with the BMC inside, for one pass over one Server."""

    def __init__(self, scope: Scope, bmc: BMC) -> None:
        self._scope, self._bmc = scope, bmc

    def __repr__(self) -> str:
        return repr(self._bmc)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._bmc, name)
        return partial(self._call, name, method) if name in _NAMES else method

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        operation = _operation(name, args, kwargs)
        await self._permit(operation, writes=name in WRITES)
        try:
            answer = await method(*args, **kwargs)
        except BMCError as exc:
            exc.operation = operation.value
            if not failing.is_permanent(exc):
                failing.failed(self._scope, operation, exc.reason, exc)
            raise
        failing.succeeded(self._scope, operation)
        if isinstance(answer, SystemInfo):
            self._note_system(answer)
        return answer

    async def _permit(self, operation: Operation, *, writes: bool) -> None:
        self._scope.attempted.add(operation)
        known = failing.find(self._scope, operation)
        if known is not None and not (operation in CONTACT and self._came_back(known)):
            failing.require_due(self._scope, operation)
        if writes:
            await self._scope.verify_system()

    def _came_back(self, known: FailingOperation) -> bool:
        """True when the BMC object has become Ready since the failure."""
        ref = self._scope.server.spec.bmc_ref
        bmc = self._scope.deps.bmcs.get(Key(ref.name)) if ref is not None else None
        ready = find(bmc.status.conditions, "Ready") if bmc is not None else None
        if ready is None or ready.status != "True" or ready.last_transition_time is None:
            return False
        return known.last_failed_at is not None and ready.last_transition_time >= known.last_failed_at.replace(
            microsecond=0
        )

    def _note_system(self, system: SystemInfo) -> None:
        self._scope.has_contact = True
        with suppress(system_check.WrongSystem):
            system_check.require(self._scope.server, system)
            failing.succeeded(self._scope, Operation.IDENTIFY)


def _operation(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Operation:
    if name == "power_off" and kwargs.get("force"):
        return Operation.FORCE_POWER_OFF
    return _RESETS.get(args[1], Operation.RESET) if name == "reset" else _NAMES[name]
