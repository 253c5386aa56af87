"""Reserved: boots the claim's image over the network, once for each request, and keeps the power that it requests."""

from metal.api.boot_window import Purpose
from metal.api.claim import ServerClaim
from metal.api.claim_boot import requests_boot
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.bmc import led_and_boot_order
from metal.controllers.server.netboot import boot
from metal.controllers.server.netboot.progress import Tenant, has_booted, is_unfinished, record_success
from metal.controllers.server.netboot.readiness import await_config, await_config_change
from metal.controllers.server.reasons import ConditionType
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import living_claims, owed_drives, reimage, sanitization_policy
from metal.controllers.server.tenancy.adoption import lost_status
from metal.controllers.server.tenancy.tenancy import claim_config, find_claim, record_kept, record_tenant
from metal.kube.controller.controller import Requeue
from metal.machine import tenancy


async def run(scope: Scope) -> Requeue:
    """Cleanup when the claim no longer exists; else one step towards the claim's boot and power."""
    claim = await find_claim(scope)
    if claim is None and (owned := await living_claims.before_release(scope)) is not None:
        return owned
    if claim is None:
        return scope.transition(State.CLEANUP, "the claim no longer exists; the server is being cleaned up")
    if scope.tenancy.uid != claim.metadata.uid:
        record_tenant(scope, claim)
        sanitization_policy.record_policy(scope, claim)
        await scope.commit()
    elif tenancy.is_boot_of_another(scope.tenancy):
        await record_kept(scope, claim)
    sanitization_policy.record_policy(scope, claim)
    await lost_status.keep(scope)  # before anything of the claim can reach the machine
    unverified = await record_success(scope, claim)
    if unverified is not None:
        return unverified
    await lost_status.keep(scope)
    if not has_booted(scope):
        return await (_network_boot if claim.spec.power == PowerState.ON else _stay_off)(scope, claim)
    if requests_boot(claim, scope.tenancy.boot):
        return await _boot_again(scope, claim)
    busy = await reimage.withdraw(scope, claim)
    return busy if busy is not None else await _follow_power(scope, claim)


async def _boot_again(scope: Scope, claim: ServerClaim) -> Requeue:
    busy = await reimage.accept(scope, claim)
    if busy is not None:
        return busy
    return await (_stay_off if claim.spec.power == PowerState.OFF else _network_boot)(scope, claim)


async def _network_boot(scope: Scope, claim: ServerClaim) -> Requeue:
    config = claim_config(scope, claim)
    if config is None:
        return await_config_change(scope, "the claim's boot configuration to be created")
    if (config.spec.image, config.spec.ignition_secret_ref) != (claim.spec.image, claim.spec.ignition_secret_ref):
        return await_config_change(scope, "the boot configuration to be updated to the claim's image and Ignition")
    unready = await_config(scope, config)
    if unready is not None:
        return unready
    if (owed := await owed_drives.before_claim_boot(scope)) is not None:
        return owed
    tenant = Tenant(claim.metadata.uid, claim.spec.boot_generation, claim.spec.minimum_boot_trust)
    busy = await boot.network_boot(
        scope, config, Purpose.CLAIM, tenant=tenant, timeout=scope.settings.claim_boot_timeout
    )
    return Requeue(0) if busy is None else busy


async def _stay_off(scope: Scope, _: ServerClaim) -> Requeue:
    scope.close_window()
    busy = await power.converge(scope, PowerState.OFF, "the claim requests power Off", force=is_unfinished(scope))
    if busy is not None:
        return busy
    return await _settled(scope, "off, as the claim requests; its network boot is still pending")


async def _follow_power(scope: Scope, claim: ServerClaim) -> Requeue:
    """Keep the claim's power. The tenant's machine boots from its disk: a network boot override is removed first."""
    target = PowerState.OFF if claim.spec.power == "Off" else PowerState.ON
    if scope.status.power_request is None:
        system = await boot.clear_override(scope)
        if target is PowerState.ON and system.power_state is not PowerState.ON and boot.is_override_kept(scope):
            return boot.await_override(scope)
    busy = await power.converge(scope, target, "the claim's power")
    if busy is not None:
        return busy
    return await _settled(scope, f"{target.value}, as the claim requests")


async def _settled(scope: Scope, text: str) -> Requeue:
    await led_and_boot_order.apply(scope)
    scope.clear_wait()
    scope.condition(ConditionType.READY, True, "Reserved", text)
    return Requeue(scope.context.jitter(scope.settings.resync))
