"""Checks the BMC: reads its manager and its systems within one deadline."""

from datetime import UTC, datetime

from metal.api.bmc import Refusal
from metal.bmc.errors import BMCAuthError, BMCError, BMCForbidden, BMCNotFound, BMCNotSupported
from metal.bmc.pool import BMC
from metal.bmc.systems import ManagerInfo
from metal.controllers.bmc import restart, trust
from metal.controllers.bmc.scope import Scope
from metal.kube.controller.controller import Requeue, Result


async def check(scope: Scope) -> Result | None:
    """Read manager and systems into the status; a failure is reported in the condition Ready and retried later."""
    try:
        await scope.contact(_read)
    except BMCError as exc:
        return report_failure(scope, exc)
    scope.memo.backoff.reset()
    secret = scope.secret.metadata.uid if scope.secret is not None else ""
    scope.set(
        refused=None, connected_secret=scope.obj.spec.bmc_secret_ref.name, connected_secret_uid=secret,
    )  # fmt: skip
    scope.report("Ready", True, "Connected", f"the BMC at {scope.require_bmc_endpoint().address} answers")
    restart.complete(scope)
    return None


def report_failure(scope: Scope, exc: BMCError) -> Result:
    """Report the error in the condition Ready; the result says when to retry."""
    scope.report("Ready", False, exc.reason, trust.explain_error(scope, exc))
    if isinstance(exc, BMCAuthError):
        return _credentials_refused(scope)
    if not restart.is_in_progress(scope):
        scope.state("Error", f"the BMC at {scope.address} to answer")
    return Requeue(scope.memo.backoff.next())


def _credentials_refused(scope: Scope) -> Result:
    settings, secret = scope.deps.settings, scope.secret
    scope.memo.refused = scope.bmc_endpoint
    if secret is not None:
        meta = secret.metadata
        scope.set(refused=Refusal(secret_uid=meta.uid, secret_generation=meta.generation, at=scope.now))
    scope.state("Error", f"valid credentials in BMCSecret {scope.obj.spec.bmc_secret_ref.name}")
    return Requeue(scope.context.jitter(settings.credentials_rest) + 1)


async def _read(scope: Scope, bmc: BMC) -> None:
    scope.systems = await bmc.systems()
    try:
        manager = await bmc.manager(scope.obj.spec.bmc_uuid)
    except (BMCNotFound, BMCNotSupported, BMCForbidden) as exc:
        if scope.obj.spec.bmc_uuid and isinstance(exc, BMCNotFound):
            raise
        manager = ManagerInfo(uri="")  # the systems of a BMC can be managed without its manager resource
    _set_status(scope, manager)


def _set_status(scope: Scope, manager: ManagerInfo) -> None:
    scope.set(
        manufacturer=manager.manufacturer or next((s.manufacturer for s in scope.systems if s.manufacturer), ""),
        model=manager.model,
        sku=manager.sku,
        serial_number=manager.serial_number,
        uuid=manager.uuid.lower(),
        firmware_version=manager.firmware_version,
        power_state=manager.power_state.value,
        last_reset_time=_parse_time(manager.last_reset_time) or scope.status.last_reset_time,
    )
    scope.state(manager.state or "Enabled")


def _parse_time(text: str) -> datetime | None:
    """A Redfish date-time (RFC 3339), or None when it is invalid; a time without a zone is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(microsecond=0) if moment.tzinfo else moment.replace(tzinfo=UTC, microsecond=0)
