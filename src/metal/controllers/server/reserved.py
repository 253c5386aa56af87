"""Reserved: gives the claim its network boot, once, and then its power. Nothing else may touch the machine."""

from collections.abc import Mapping

import msgspec

from metal.api.boot_window import Purpose
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.server import ClaimBoot, State
from metal.bmc.protocols import PowerState
from metal.controllers.server import boot, power, trim
from metal.controllers.server.discovery import await_config
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue
from metal.kube.errors import NotFound
from metal.kube.objects import Key

WAITS: Mapping[str, str] = {
    "BootConfiguration": "boot_config_timeout",
    "ClaimBoot": "claim_boot_timeout",
    "PowerOn": "power_timeout",
    "PowerOff": "power_timeout",
}


async def run(scope: Scope) -> Requeue:
    """Cleanup when the claim is gone; else one step towards the claim's boot and power."""
    claim = await find_claim(scope)
    if claim is None:
        return scope.go(State.CLEANUP, "the claim is gone; the server is being cleaned up")
    if scope.status.tenant != claim.metadata.uid:
        _take_tenant(scope, claim.metadata.uid)
        await scope.commit()
    if scope.server.spec.server_maintenance_ref is not None:
        return scope.go(State.MAINTENANCE, "a maintenance holds the server")
    booted = scope.status.claim_boot
    if booted is not None and booted.booted_at is not None:
        return await _follow_power(scope, claim)
    if claim.spec.power != PowerState.ON:
        return await _stay_off(scope)
    return await _first_boot(scope, claim)


async def find_claim(scope: Scope) -> ServerClaim | None:
    """The claim that holds this server, or None when it is gone for sure (asked of the API, not of the cache).

    A new claim with the old one's name is another claim: the former tenant's traces come first.
    """
    ref = scope.server.spec.server_claim_ref
    if ref is None:
        return None
    claim = scope.deps.claims.get(Key(ref.name, ref.namespace))
    if claim is None or claim.metadata.deletion_timestamp or scope.status.tenant not in ("", claim.metadata.uid):
        try:
            claim = await scope.context.client.get(scope.context.kinds.claim, ref.name, ref.namespace)
        except NotFound:
            return None
    if claim.metadata.deletion_timestamp or scope.status.tenant not in ("", claim.metadata.uid):
        return None
    return claim


def claim_config(scope: Scope, claim: ServerClaim) -> ServerBootConfiguration | None:
    """The claim's own boot configuration, if the server points at it already."""
    config = scope.boot_config()
    if config is None or config.metadata.namespace != claim.metadata.namespace:
        return None
    owned = any(ref.uid == claim.metadata.uid for ref in config.metadata.owner_references)
    return config if owned else None


async def _first_boot(scope: Scope, claim: ServerClaim) -> Requeue:
    config = claim_config(scope, claim)
    if config is None:
        return scope.wait(
            "BootConfiguration", "the claim's boot configuration", deadline=scope.settings.boot_config_timeout
        )
    if (config.spec.image, config.spec.ignition_secret_ref) != (claim.spec.image, claim.spec.ignition_secret_ref):
        return scope.wait(
            "BootConfiguration",
            "the boot configuration to follow the claim",
            deadline=scope.settings.boot_config_timeout,
        )
    unready = await_config(scope, config)
    if unready is not None:
        return unready
    uid = claim.metadata.uid
    busy = await boot.network_boot(
        scope, config, Purpose.CLAIM, claim_uid=uid, timeout=scope.settings.claim_boot_timeout
    )
    if busy is not None:
        return busy
    scope.set(claim_boot=ClaimBoot(claim_uid=uid, image=config.spec.image, booted_at=scope.now))
    scope.tell("Booted", f"the claim {claim.metadata.namespace}/{claim.metadata.name} booted {config.spec.image}")
    await scope.commit()
    return await _follow_power(scope, claim)


async def _stay_off(scope: Scope) -> Requeue:
    boot.close_window(scope)
    busy = await power.converge(scope, PowerState.OFF, "the claim wants it off")
    if busy is not None:
        return busy
    return await _rest(scope, "off, as the claim wants; its first boot is still owed")


async def _follow_power(scope: Scope, claim: ServerClaim) -> Requeue:
    """The tenant's machine comes back from its disk: an override that would send it to the network is removed first."""
    target = PowerState.OFF if claim.spec.power == "Off" else PowerState.ON
    system = await boot.clear_override(scope)
    if target is PowerState.ON and system.power_state is not PowerState.ON:
        system = await scope.observe(max_age=0.0)
        if system.boot.is_network:
            return scope.wait(
                "BootOverride",
                "the BMC to drop the network boot override",
                deadline=scope.settings.power_timeout,
                poll=30,
            )
    busy = await power.converge(scope, target, "the claim's power")
    if busy is not None:
        return busy
    return await _rest(scope, f"{target.value}, as the claim wants")


async def _rest(scope: Scope, text: str) -> Requeue:
    await trim.apply(scope)
    scope.no_wait()
    scope.condition("Ready", True, "Reserved", text)
    return Requeue(scope.context.jitter(scope.settings.resync))


def assume_booted(scope: Scope) -> None:
    """A claimed server that lost its status: nobody knows whether it booted, so it counts as booted."""
    scope.set(claim_boot=ClaimBoot(booted_at=scope.now))
    scope.condition(
        "BootAssumed", True, "StatusLost", "the status was lost; the claim counts as booted, so its disk is left alone"
    )


def _take_tenant(scope: Scope, claim_uid: str) -> None:
    """Write down whose traces the machine will carry, before it can carry any."""
    assumed = scope.status.claim_boot
    kept = assumed if assumed is not None and not assumed.claim_uid else None
    boot_of_claim = msgspec.structs.replace(kept, claim_uid=claim_uid) if kept else None
    scope.set(tenant=claim_uid, claim_boot=boot_of_claim, boot_attempts=0)
