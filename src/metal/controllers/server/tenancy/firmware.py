"""Resets firmware settings after a tenant: the BMC is asked before the sanitization boot, which performs the reset.

In: what the server's label or the setting requests, BIOS defaults or clearing the TPM; one of them for each boot,
because a BIOS that returns to its defaults may drop other pending requests without reporting it.

`prepare` writes `status.firmwareReset` before the BMC is asked, so that a manager that takes over knows of the request;
asking twice has the same result. `finish` reads back, once the machine has started and is off again, whether the BMC
still reports the reset as pending. The result is recorded in the evidence. The server depends on it only if the
setting requires it.
"""

import msgspec

from metal.api.sanitization import Firmware, FirmwareReset, FirmwareResult
from metal.bmc.errors import (
    BMCBadRequest,
    BMCConflict,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCServerError,
)  # fmt: skip
from metal.controllers.server.reasons import WaitFor
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import sanitization_policy
from metal.kube.controller.controller import Requeue

_REFUSALS = (BMCBadRequest, BMCForbidden, BMCNotFound)
_TRANSIENT = (BMCConflict, BMCServerError)
_WORDS = {Firmware.CLEAR_TPM: "the clearing of the TPM", Firmware.RESET_BIOS: "the BIOS reset"}


async def prepare(scope: Scope) -> Requeue | None:
    """None once the BMC was asked, with any result, or no reset is configured. Raises other BMCErrors.

    The request is written before the BMC is asked; asking twice has the same result.
    """
    wanted, reset = sanitization_policy.firmware_for(scope), scope.status.firmware_reset
    if wanted == Firmware.NONE or (reset is not None and reset.result != FirmwareResult.ASKED):
        return None
    if reset is None:
        required = scope.settings.sanitization_firmware_required
        reset = FirmwareReset(action=wanted, required=required, result=FirmwareResult.ASKED, asked_at=scope.now)
        scope.set(firmware_reset=reset)
    await scope.require_latest()
    try:
        await _ask(scope, reset)
    except BMCNotSupported as exc:
        _end(scope, FirmwareResult.NOT_SUPPORTED, str(exc))
    except _REFUSALS as exc:
        _end(scope, FirmwareResult.FAILED, str(exc))
    except _TRANSIENT as exc:
        if not scope.overdue(WaitFor.FIRMWARE_RESET):
            text = f"the BMC to accept {_WORDS[Firmware(reset.action)]}: {exc}"
            return scope.wait(WaitFor.FIRMWARE_RESET, text)
        _end(scope, FirmwareResult.FAILED, str(exc))
    await scope.commit()
    return None


async def _ask(scope: Scope, reset: FirmwareReset) -> None:
    clears = reset.action == Firmware.CLEAR_TPM
    await (scope.connected().clear_tpm if clears else scope.connected().reset_bios)(scope.uri)
    if await _is_pending(scope, reset) is False:
        _end(scope, FirmwareResult.FAILED, "the BMC accepted the request, but reports nothing as pending")
        return
    scope.set(firmware_reset=msgspec.structs.replace(reset, result=FirmwareResult.PENDING))


async def finish(scope: Scope) -> tuple[FirmwareReset, ...]:
    """The result, once the machine has started and is off again; empty if nothing was requested. Raises BMCError."""
    reset = scope.status.firmware_reset
    if reset is None:
        return _unasked(scope)
    if reset.result == FirmwareResult.PENDING:
        pending = await _is_pending(scope, reset)
        if pending is None:
            _end(scope, FirmwareResult.UNCONFIRMED, "the BMC accepted the request, but offers nothing to read back")
        elif pending:
            _end(scope, FirmwareResult.FAILED, "the machine has started, but the BMC still reports it as pending")
        else:
            _end(scope, FirmwareResult.SUCCEEDED, "")
    elif reset.result == FirmwareResult.ASKED:
        _end(scope, FirmwareResult.UNCONFIRMED, "it is unknown whether the BMC received the request")
    ended = scope.status.firmware_reset
    return (ended,) if ended is not None else ()


def _unasked(scope: Scope) -> tuple[FirmwareReset, ...]:
    """A required reset without a record is unconfirmed: the setting is newer, or the API dropped the field."""
    wanted = sanitization_policy.firmware_for(scope)
    if wanted == Firmware.NONE or not scope.settings.sanitization_firmware_required:
        return ()
    why = "this boot started before the reset was required, or the CRDs lack the field"
    return (FirmwareReset(action=wanted, required=True, result=FirmwareResult.UNCONFIRMED, message=why),)


async def _is_pending(scope: Scope, reset: FirmwareReset) -> bool | None:
    bmc = scope.connected()
    try:
        clears = reset.action == Firmware.CLEAR_TPM
        return await (bmc.is_tpm_clear_pending if clears else bmc.is_bios_reset_pending)(scope.uri)
    except (BMCNotSupported, BMCNotFound):
        return None


def _end(scope: Scope, result: FirmwareResult, message: str) -> None:
    reset = scope.status.firmware_reset
    if reset is None:
        return
    scope.set(firmware_reset=msgspec.structs.replace(reset, result=result, ended_at=scope.now, message=message[:500]))
    what = f"{reset.action}: {result}{f', {message}' if message else ''}"
    scope.record_event("FirmwareReset", what, warning=result != FirmwareResult.SUCCEEDED)
