"""What a BMC is held to: the certificate and the SSH host key that it showed first, or that a person accepted."""

import asyncio

import msgspec

from metal.api.bmc import Pin
from metal.api.names import OPERATION
from metal.bmc.errors import BMCCertificateChanged, BMCError, BMCHostKeyChanged, BMCTimeout
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared import host_key as hostkey
from metal.controllers.shared.bmc_endpoint import FirstUse, Problem, address_of_bmc, is_encrypted, trust_of
from metal.controllers.shared.sessions import explain
from metal.kube.controller.controller import Result

ACCEPT_CERTIFICATE = "accept-certificate"


async def accept(scope: Scope) -> Result | None:
    """Hold the BMC to what it showed last, when a person says so: to what status says, not to what answers now."""
    if scope.operation == ACCEPT_CERTIFICATE:
        await _accept(scope, "certificate", "certificate", "CertificateAccepted")
    elif scope.operation == hostkey.ACCEPT:
        await _accept(scope, "ssh_host_key", "SSH host key", "HostKeyAccepted")
    elif not _on_first_use(scope) and scope.status.certificate is not None:
        scope.set(certificate=None)
    judge(scope)
    return None


def judge(scope: Scope) -> None:
    """Say whether the SSH host key is the pinned one. A person at the console may have pinned or refused it."""
    pin = scope.status.ssh_host_key
    if pin is not None:
        scope.report(*hostkey.judged(pin, scope.name, "bmcs", scope.context.kinds.key(OPERATION)))


async def pin_certificate(scope: Scope) -> None:
    """Remember the certificate that the BMC shows, before anything is said to it. Raises BMCError."""
    address = address_of_bmc(scope.obj, scope.endpoint)
    if isinstance(address, Problem):
        return
    limit = scope.deps.settings.contact_timeout
    try:
        async with asyncio.timeout(limit):
            seen = await scope.deps.pool.certificate(address, scope.obj.spec.protocol.port)
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {address} did not show its certificate within {limit:g} s") from None
    scope.set(certificate=Pin(sha256=seen, since=scope.now))
    await scope.commit()
    scope.event("Normal", "CertificatePinned", f"the first certificate is trusted from now on: SHA-256 {seen}")


async def host_key(scope: Scope, address: str, port: int) -> str:
    """The pinned host key; at first use the one that the BMC shows, which is written down first. Raises BMCError."""
    if scope.status.ssh_host_key is None:
        seen = await scope.deps.shell.host_key(address, port)
        scope.set(ssh_host_key=Pin(sha256=seen, since=scope.now))
        judge(scope)
        await scope.commit()
    pinned: str = scope.status.ssh_host_key.sha256
    return pinned


def host_key_shown(scope: Scope) -> None:
    """The pinned host key was shown; another one that was refused before is no longer worth a condition."""
    pin = scope.status.ssh_host_key
    if pin is not None and pin.refused:
        scope.set(ssh_host_key=msgspec.structs.replace(pin, refused=""))
        judge(scope)


def explained(scope: Scope, exc: BMCError) -> str:
    """What a person can do about an error; what was shown instead of a pin is remembered, to be accepted or not."""
    if isinstance(exc, BMCHostKeyChanged) and (pin := scope.status.ssh_host_key) is not None:
        scope.set(ssh_host_key=msgspec.structs.replace(pin, refused=exc.seen))
        judge(scope)
    if not isinstance(exc, BMCCertificateChanged) or (pin := scope.status.certificate) is None:
        return explain(exc)
    scope.set(certificate=msgspec.structs.replace(pin, refused=exc.seen))
    annotation = f"{scope.context.kinds.key(OPERATION)}={ACCEPT_CERTIFICATE}"
    return (
        f"{str(exc).rstrip('.')}. If the BMC was given a new certificate, accept it: "
        f"kubectl annotate bmcs {scope.name} {annotation}; otherwise find out who answers there"
    )


async def _accept(scope: Scope, field: str, what: str, reason: str) -> None:
    pin: Pin | None = getattr(scope.status, field)
    if pin is None or not pin.refused:
        await scope.consume_operation()
        scope.event("Warning", "NothingToAccept", f"no other {what} than the pinned one was shown")
        return
    scope.set(**{field: Pin(sha256=pin.refused, since=scope.now)})
    await scope.commit()
    await scope.consume_operation()
    scope.event("Normal", reason, f"the {what} {pin.refused} is trusted from now on, and {pin.sha256} no longer")


def _on_first_use(scope: Scope) -> bool:
    defaults, spec = scope.deps.defaults, scope.obj.spec
    return is_encrypted(spec.protocol, defaults) and isinstance(trust_of(spec.tls, defaults), FirstUse)
