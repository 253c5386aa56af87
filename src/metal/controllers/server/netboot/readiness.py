"""Waits until the boot server has everything that a boot configuration names: a local image, a valid Ignition."""

from metal.api.claim import ServerBootConfiguration
from metal.controllers.server.reasons import Reason, WaitFor
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.kube.meta.objects import key_of


def is_ready(config: ServerBootConfiguration | None) -> bool:
    """True when the boot server has observed the configuration's current generation, and can serve it."""
    if config is None or config.status.state != "Ready":
        return False
    return config.status.observed_generation in (0, config.metadata.generation)


def await_config(scope: Scope, config: ServerBootConfiguration) -> Requeue | None:
    """None when `config` can be served; else the wait, or Error past its deadline."""
    if is_ready(config):
        return None
    name = str(key_of(config))
    return await_config_change(scope, f"the boot configuration {name} to be ready: {_why(config)}")


def await_config_change(scope: Scope, awaited: str) -> Requeue:
    """Wait for a boot configuration; Error past the deadline."""
    if scope.overdue(WaitFor.BOOT_CONFIGURATION):
        return scope.fail(
            Reason.BOOT_CONFIGURATION_NOT_READY,
            f"waited {scope.settings.boot_config_timeout:.0f} s for {awaited}. Correct what the message names",
        )
    return scope.wait(WaitFor.BOOT_CONFIGURATION, awaited)


def _why(config: ServerBootConfiguration) -> str:
    bad = [c.message for c in config.status.conditions if c.status == "False" and c.message]
    return "; ".join(bad) or config.status.waiting_for or f"state {config.status.state or 'Pending'}"
