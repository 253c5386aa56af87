"""Pins the certificate and the SSH host key that a BMC presents first (trust on first use), or that was accepted later.

A pin is written to the status before anything secret is sent. When the BMC presents another certificate or key, no
password is sent; its fingerprint is stored as `refused`, and the condition names the annotation that accepts it. That
annotation pins the stored fingerprint, which the administrator has seen, not what the device presents at that moment.
"""

import asyncio

import msgspec

from metal.api.bmc import Pin
from metal.api.names import OPERATION
from metal.bmc.errors import BMCCertificateChanged, BMCError, BMCHostKeyChanged, BMCTimeout
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared import host_key as hostkey
from metal.controllers.shared.bmc_endpoint import FirstUse, address_of_bmc, is_encrypted, trust_of
from metal.controllers.shared.problem import Problem
from metal.controllers.shared.sessions import explain
from metal.kube.controller.controller import Result

ACCEPT_CERTIFICATE = "accept-certificate"


async def accept(scope: Scope) -> Result | None:
    """Carry out the operations that accept a refused certificate or host key."""
    if scope.operation == ACCEPT_CERTIFICATE:
        await _accept(scope, "certificate", "certificate", "CertificateAccepted")
    elif scope.operation == hostkey.ACCEPT:
        await _accept(scope, "ssh_host_key", "SSH host key", "HostKeyAccepted")
    elif not _on_first_use(scope) and scope.status.certificate is not None:
        scope.set(certificate=None)
    report_host_key(scope)
    return None


def report_host_key(scope: Scope) -> None:
    """Report whether the SSH host key is the pinned one; `metalctl console` may have pinned or refused it."""
    pin = scope.status.ssh_host_key
    if pin is not None:
        scope.report(*hostkey.condition_of(pin, scope.name, "bmcs", scope.context.kinds.key(OPERATION)))


async def pin_certificate(scope: Scope) -> None:
    """Pin the certificate that the BMC presents, before anything is sent to it. Raises BMCError."""
    address = address_of_bmc(scope.obj, scope.endpoint)
    if isinstance(address, Problem):
        return
    limit = scope.deps.settings.contact_timeout
    try:
        async with asyncio.timeout(limit):
            seen = await scope.deps.pool.certificate(address, scope.obj.spec.protocol.port)
    except TimeoutError:
        raise BMCTimeout(f"the BMC at {address} did not present its certificate within {limit:g} s") from None
    scope.set(certificate=Pin(sha256=seen, since=scope.now))
    await scope.commit()
    scope.event(
        "Normal", "CertificatePinned", f"the first certificate is pinned and trusted from now on: SHA-256 {seen}"
    )


async def host_key(scope: Scope, address: str, port: int) -> str:
    """The pinned host key; at first use the one that the BMC presents, which is pinned first. Raises BMCError."""
    if scope.status.ssh_host_key is None:
        seen = await scope.deps.shell.host_key(address, port)
        scope.set(ssh_host_key=Pin(sha256=seen, since=scope.now))
        report_host_key(scope)
        await scope.commit()
    pinned: str = scope.status.ssh_host_key.sha256
    return pinned


def clear_refused_host_key(scope: Scope) -> None:
    """The BMC presented the pinned host key again: forget another one that was refused before."""
    pin = scope.status.ssh_host_key
    if pin is not None and pin.refused:
        scope.set(ssh_host_key=msgspec.structs.replace(pin, refused=""))
        report_host_key(scope)


def explain_error(scope: Scope, exc: BMCError) -> str:
    """The error with advice; a certificate or key that differs from the pin is stored, so that it can be accepted."""
    if isinstance(exc, BMCHostKeyChanged) and (pin := scope.status.ssh_host_key) is not None:
        scope.set(ssh_host_key=msgspec.structs.replace(pin, refused=exc.seen))
        report_host_key(scope)
    if not isinstance(exc, BMCCertificateChanged) or (pin := scope.status.certificate) is None:
        return explain(exc)
    scope.set(certificate=msgspec.structs.replace(pin, refused=exc.seen))
    annotation = f"{scope.context.kinds.key(OPERATION)}={ACCEPT_CERTIFICATE}"
    return (
        f"{str(exc).rstrip('.')}. If the BMC was given a new certificate, accept it: "
        f"kubectl annotate bmcs {scope.name} {annotation}; otherwise check which device has this address"
    )


async def _accept(scope: Scope, field: str, what: str, reason: str) -> None:
    pin: Pin | None = getattr(scope.status, field)
    if pin is None or not pin.refused:
        await scope.consume_operation()
        scope.event("Warning", "NothingToAccept", f"the BMC has presented no {what} other than the pinned one")
        return
    scope.set(**{field: Pin(sha256=pin.refused, since=scope.now)})
    await scope.commit()
    await scope.consume_operation()
    scope.event("Normal", reason, f"the {what} {pin.refused} is trusted from now on instead of {pin.sha256}")


def _on_first_use(scope: Scope) -> bool:
    defaults, spec = scope.deps.defaults, scope.obj.spec
    return is_encrypted(spec.protocol, defaults) and isinstance(trust_of(spec.tls, defaults), FirstUse)
