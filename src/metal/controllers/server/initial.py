"""Initial: reads what the BMC knows of the machine and asks for the discovery boot."""

from collections.abc import Mapping
from typing import Any

from metal.api.core import SECRET
from metal.api.kinds import Kinds
from metal.api.server import State
from metal.controllers.server import identity, ignition, summary
from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue
from metal.kube.ownership import controller_reference
from metal.kube.rbac import APPLY, Access, Where, blocks, disowns

WAITS: Mapping[str, str] = {"BMC": "bmc_timeout"}
MANAGER = "metal-operator"


async def run(scope: Scope) -> Requeue:
    """Inventory into status, discovery boot configuration and its Ignition into the API, then Discovery."""
    inventory = await scope.connected().inventory(scope.uri)
    identity.require(scope.server, inventory.system)
    scope.set(**summary.of_inventory(inventory, scope.status.network_interfaces))
    if inventory.problems:
        scope.condition("InventoryComplete", False, "PartlyRead", "; ".join(inventory.problems)[:1000])
    else:
        scope.condition("InventoryComplete", True, "Read", "the BMC's inventory was read")
    try:
        text = ignition.discovery(scope.settings.probe_bundle, scope.settings.registry_url, scope.server.uuid)
    except ValueError as exc:
        return scope.fail("InvalidSpec", str(exc))
    await _ask_for_boot(scope, text)
    scope.set(boot_attempts=0, boot_window=None)  # a report of an earlier boot proves nothing now
    return scope.go(State.DISCOVERY, "inventory read from the BMC; the discovery boot is being prepared")


async def _ask_for_boot(scope: Scope, text: str) -> None:
    deps, context, settings = scope.deps, scope.context, scope.settings
    await _write_ignition(scope, text, [])  # first, so that the boot operator never sees it missing
    config = await context.client.apply(context.kinds.boot_config, _config(scope), manager=MANAGER)
    deps.configs.observe(config)
    await _write_ignition(scope, text, [controller_reference(config, context.kinds.boot_config)])
    ref = {"namespace": settings.namespace, "name": scope.name}
    current = scope.server.spec.boot_configuration_ref
    if current is None or (current.namespace, current.name) != (settings.namespace, scope.name):
        await scope.patch({"spec": {"bootConfigurationRef": ref}})


async def _write_ignition(scope: Scope, text: str, owners: list[dict[str, Any]]) -> None:
    secret = {
        "metadata": {"name": scope.name, "namespace": scope.settings.namespace, "ownerReferences": owners},
        "type": "Opaque",
        # The Go operator wrote Butane under the same name, and said so in format.
        "data": {"ignition": ignition.base64_text(text), "format": ignition.base64_text("ignition")},
    }
    await scope.context.client.apply(SECRET, secret, manager=MANAGER)


def _config(scope: Scope) -> dict[str, object]:
    kinds, settings = scope.context.kinds, scope.settings
    owner = controller_reference(scope.server, kinds.server)
    return {
        "metadata": {
            "name": scope.name,
            "namespace": settings.namespace,
            "ownerReferences": [owner],
            "annotations": {kinds.key("type"): "Internal", kinds.key("is-default-os-image"): "true"},
        },
        "spec": {
            "serverRef": {"name": scope.name},
            "image": settings.probe_image,
            "ignitionSecretRef": {"name": scope.name},
        },
    }


def access(kinds: Kinds) -> tuple[Access, ...]:
    """What this state does with the API. The Secret has the Server's name, which no rule can know before."""
    home = Where.HOME
    return (
        Access(kinds.boot_config, APPLY, "asks for the discovery boot", where=home),
        disowns(kinds.boot_config, home),
        Access(SECRET, APPLY, "writes the Ignition of the discovery boot", where=home),
        disowns(SECRET, home),
        blocks(kinds.boot_config, home),
        blocks(kinds.server),
    )
