"""The permission to erase: which drives of a machine the probe may erase, decided before it erases the first one.

A BMC may list no drives, or not all, so a drive with data of another server's claim may be in the machine unnoticed.
Therefore the probe asks first, with the list of the drives that it sees. The registry stores the list in the evidence
of the boot and its digest in `status.bootWindow.erasureAsked`.

- No drive has data of a claim that exists: `decide` writes that digest to `erasureAllowed`, and the registry allows the
  erasure of exactly these drives. The time limit of the erasure begins.
- A claim exists that may own the data of this server, although none did before the boot: the window is closed, and
  `living_claims.before_erasure` decides once the machine is off.
- A drive has such data: the window is closed, so that the token is void, and the machine is switched off. The evidence
  of that boot has the drives, which are looked up in each pass (`refused_drives`), and the server waits (`DriveOwed`)
  until the claim is gone or an administrator accepts. `operation=retry` boots the probe again, which asks again
  (`ask_again`): this shows that the drive was returned.

A probe of a former version does not ask, and a registry of a former version answers without the manager; the evidence
says so (`remarks`).
"""

from datetime import timedelta

from metal.api.boot_window import BootWindow, Phase, Purpose
from metal.api.sanitization import KnownDrive, SanitizationEvidence
from metal.api.server import State
from metal.bmc.power import PowerState
from metal.controllers.server import power
from metal.controllers.server.scope import Scope
from metal.controllers.server.tenancy import living_claims, owed_drives
from metal.evidence import drives, record
from metal.kube.controller.controller import Requeue
from metal.machine import boot_window, tenancy

_NOT_ASKED = (
    "probe or registry is of a former version, and the erasure began without a question: drives that the BMC does not "
    "list were not looked up"
)


def is_awaited(window: BootWindow, evidence: SanitizationEvidence) -> bool:
    """True while the probe awaits the permission to erase the drives that the evidence lists."""
    asking = window.phase == Phase.IGNITION_SERVED and boot_window.awaits_permission(window)
    return asking and drives.digest(evidence.status.drives) == window.erasure_asked


async def decide(scope: Scope, window: BootWindow, evidence: SanitizationEvidence, seconds: float) -> Requeue:
    """Allow the erasure, which may take `seconds` from now, or end the boot. Raises BMCError and ApiError."""
    busy = await owed_drives.before_permission(scope, drives.seen(evidence.status.drives))
    if busy is None:
        await scope.require_latest()
    is_claimed = busy is None and await living_claims.are_there(scope)  # one may have been restored since the boot
    if busy is None and not is_claimed:
        until = scope.now + timedelta(seconds=seconds)
        scope.set(boot_window=boot_window.allow_erasure(window, until))
        return Requeue(0)
    scope.close_window()
    scope.set(tenancy=tenancy.not_erased(scope.tenancy, scope.now), sanitization_progress=None)
    why = "a claim exists that may own the data" if is_claimed else scope.status.waiting_for
    scope.record_event("ErasureRefused", f"nothing was erased: {why}", warning=True)
    return await switch_off_refused(scope, scope.status.boot_window) or Requeue(0)


def _is_refused(window: BootWindow | None) -> bool:
    """True after a boot that ended before the erasure was allowed."""
    return window is not None and window.phase == Phase.CLOSED and boot_window.awaits_permission(window)


async def switch_off_refused(scope: Scope, window: BootWindow | None) -> Requeue | None:
    """Switch the machine off after a refusal; nothing on it needs a shutdown. Raises BMCError."""
    if not _is_refused(window):
        return None
    return await power.converge(scope, PowerState.OFF, "its drives must not be erased", force=True)


async def refused_drives(scope: Scope, window: BootWindow | None) -> tuple[KnownDrive, ...]:
    """The drives that the probe saw in a boot that ended before their erasure was allowed. Raises ApiError."""
    if window is None or not _is_refused(window):
        return ()
    context = scope.context
    evidence = await record.find(context.client, context.kinds, record.name_of(scope.name, window))
    return drives.seen(evidence.status.drives) if evidence is not None else ()


def ask_again(scope: Scope) -> None:
    """Execute operation=retry after a refusal: the probe is booted again and lists the drives that it then sees."""
    window = scope.status.boot_window
    if scope.status.state == State.CLEANUP and _is_refused(window):
        scope.set(boot_window=None)
        scope.clear_wait()


def remarks(scope: Scope, evidence: SanitizationEvidence) -> tuple[str, ...]:
    """What the evidence says of a probe that did not ask."""
    window = scope.status.boot_window
    erasing = window is not None and window.purpose == Purpose.SANITIZATION and bool(evidence.status.drives)
    return (_NOT_ASKED,) if erasing and window is not None and not window.erasure_asked else ()
