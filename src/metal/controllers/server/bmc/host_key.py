"""The SSH host key of the BMC in a Server's own spec.bmc: consoles record it, and this module reports it."""

from metal.api.bmc import Pin
from metal.api.names import OPERATION
from metal.controllers.server.scope import Scope
from metal.controllers.shared.access.host_key import ACCEPT, condition_of
from metal.kube.controller.controller import Requeue


async def report(scope: Scope) -> Requeue | None:
    """Report in a condition whether the BMC presents the pinned key."""
    pin = scope.status.ssh_host_key
    if pin is None:
        return None
    type, trusted, reason, text = condition_of(pin, scope.name, "servers", scope.context.kinds.key(OPERATION))
    if scope.condition(type, trusted, reason, text):
        scope.record_event(reason, text, warning=not trusted)
    return None


def accept(scope: Scope) -> None:
    """Pin the key that status.sshHostKey.refused has, not the one that the BMC presents now."""
    pin = scope.status.ssh_host_key
    if pin is not None and pin.refused:
        scope.set(ssh_host_key=Pin(sha256=pin.refused, since=scope.now))
        scope.record_event("HostKeyAccepted", f"{pin.refused} is trusted from now on, and {pin.sha256} no longer")
        return
    where = f"; annotate BMC {ref.name} for its key" if (ref := scope.server.spec.bmc_ref) is not None else ""
    scope.record_event("NothingToAccept", f"operation {ACCEPT}: no key of spec.bmc was refused{where}", warning=True)
