"""Asks the BMC who it is and which systems it has, within one deadline."""

from datetime import UTC, datetime

from metal.api.bmc import Refusal
from metal.bmc.errors import BMCAuthError, BMCError, BMCForbidden, BMCNotFound, BMCNotSupported
from metal.bmc.protocols import BMC, ManagerInfo
from metal.controllers.bmc import restart, trust
from metal.controllers.bmc.contact import bounded
from metal.controllers.bmc.scope import Scope
from metal.kube.controller.controller import Requeue, Result


async def observe(scope: Scope) -> Result | None:
    """Read manager and systems into the status; a failure becomes the Ready condition and a later retry."""
    try:
        await bounded(scope, _read)
    except BMCError as exc:
        return failed(scope, exc)
    scope.memo.backoff.reset()
    scope.set(refused=None)
    scope.report("Ready", True, "Connected", f"the BMC at {scope.connected().address} answers")
    restart.complete(scope)
    return None


def failed(scope: Scope, exc: BMCError) -> Result:
    """Say what went wrong and when it is tried again."""
    scope.report("Ready", False, exc.reason, trust.explained(scope, exc))
    if isinstance(exc, BMCAuthError):
        return _refused(scope)
    if not restart.is_awaited(scope):
        scope.state("Error", f"the BMC at {scope.address} to answer")
    return Requeue(scope.memo.backoff.next())


def _refused(scope: Scope) -> Result:
    settings, secret = scope.deps.settings, scope.secret
    scope.memo.refused = scope.access
    if secret is not None:
        meta = secret.metadata
        scope.set(refused=Refusal(secret_uid=meta.uid, secret_generation=meta.generation, at=scope.now))
    scope.state("Error", f"right credentials in BMCSecret {scope.obj.spec.bmc_secret_ref.name}")
    return Requeue(scope.context.jitter(settings.credentials_rest) + 1)


async def _read(scope: Scope, bmc: BMC) -> None:
    scope.systems = await bmc.systems()
    try:
        manager = await bmc.manager(scope.obj.spec.bmc_uuid)
    except (BMCNotFound, BMCNotSupported, BMCForbidden) as exc:
        if scope.obj.spec.bmc_uuid and isinstance(exc, BMCNotFound):
            raise
        manager = ManagerInfo(uri="")  # a BMC without a readable manager still has systems to manage
    _describe(scope, manager)


def _describe(scope: Scope, manager: ManagerInfo) -> None:
    scope.set(
        manufacturer=manager.manufacturer or next((s.manufacturer for s in scope.systems if s.manufacturer), ""),
        model=manager.model,
        sku=manager.sku,
        serial_number=manager.serial_number,
        firmware_version=manager.firmware_version,
        power_state=manager.power_state.value,
        last_reset_time=_moment(manager.last_reset_time) or scope.status.last_reset_time,
    )
    scope.state(manager.state or "Enabled")


def _moment(text: str) -> datetime | None:
    """A Redfish date-time (RFC 3339), None when it is none: some BMCs send 00:00:00 or local time without a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(microsecond=0) if moment.tzinfo else moment.replace(tzinfo=UTC, microsecond=0)
