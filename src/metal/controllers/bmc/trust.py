"""Pins the certificate and the SSH host key that a BMC presents first (trust on first use), or that was accepted later.

A pin is written to annotations of the BMC and its BMCSecret and to the status before anything secret is sent; they
outlive a status that another client wiped, and a BMC of an older backup (`metal.controllers.shared.access.pins`). When
the BMC presents another certificate or key, no password is sent; its fingerprint is stored as `refused`, and the
condition names the operation that accepts it. That operation pins the stored fingerprint, which the administrator has
seen, not what the device presents at that moment.
"""

import asyncio

import msgspec

from metal.api.bmc import Pin
from metal.api.names import OPERATION
from metal.bmc.errors import BMCCertificateChanged, BMCError, BMCHostKeyChanged, BMCTimeout
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.access import host_key as hostkey
from metal.controllers.shared.access import pins
from metal.controllers.shared.access.bmc_endpoint import FirstUse, address_of_bmc, trust_of
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.access.sessions import explain
from metal.kube.client.withheld import withheld
from metal.kube.controller.controller import Result

ACCEPT_CERTIFICATE = "accept-certificate"


async def accept(scope: Scope) -> Result | None:
    """Restore pins that the status lost, and carry out the operations that accept a refused certificate or host key."""
    for field in pins.ANNOTATIONS:
        await _keep(scope, field)
    if scope.operation == ACCEPT_CERTIFICATE:
        await _accept(scope, "certificate", "certificate", "CertificateAccepted")
    elif scope.operation == hostkey.ACCEPT:
        await _accept(scope, "ssh_host_key", "SSH host key", "HostKeyAccepted")
    elif scope.status.certificate is not None and _is_verified_otherwise(scope):
        await scope.patch(pins.change(scope.context.kinds, "certificate", ""))
        scope.set(certificate=None)
    report_host_key(scope)
    return None


async def _keep(scope: Scope, field: str) -> None:
    """Make the pin in the status and its copy agree. Raises ApiError."""
    kinds = scope.context.kinds
    secret = None if field == "certificate" and _is_verified_otherwise(scope) else scope.secret
    pin = pins.restored(scope.obj, kinds, field, scope.now, secret)
    if pin is None:
        return
    if not pins.kept(scope.obj, kinds, field):
        await scope.patch(pins.change(kinds, field, pin.sha256))
    if pin != getattr(scope.status, field):
        scope.set(**{field: pin})
        await scope.commit()
        scope.event(
            "Warning", "PinRestored",
            f"the status did not have this pin: {pin.sha256} is pinned again, from the annotation "
            f"{kinds.key(pins.ANNOTATIONS[field])} of the BMC, or from its BMCSecret. Another client changed the "
            "status, an older BMC was restored, or a manager was stopped between two writes",
        )  # fmt: skip


async def keep_in_secret(scope: Scope) -> None:
    """Bring the pins in the BMCSecret up to date, which the BMC may use. Raises ApiError."""
    secret, kinds, client = scope.secret, scope.context.kinds, scope.context.client
    if secret is None:
        return
    known = {field: getattr(scope.status, field) for field in pins.ANNOTATIONS}
    now = {field: pin.sha256 if pin is not None else "" for field, pin in known.items()}
    if notes := pins.change_secret(kinds, secret, now, scope.name):
        body = {"metadata": {"annotations": notes}}
        with withheld():
            scope.deps.secrets.observe(await client.patch(kinds.bmc_secret, secret.metadata.name, body))


async def _pin(scope: Scope, field: str, fingerprint: str) -> None:
    """Pin a fingerprint: first in the annotation, which outlives the status. Raises ApiError."""
    await scope.patch(pins.change(scope.context.kinds, field, fingerprint))
    scope.set(**{field: Pin(sha256=fingerprint, since=scope.now)})


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
    await _pin(scope, "certificate", seen)
    await scope.commit()
    scope.event(
        "Normal", "CertificatePinned", f"the first certificate is pinned and trusted from now on: SHA-256 {seen}"
    )


async def host_key(scope: Scope, address: str, port: int) -> str:
    """The pinned host key; at first use the one that the BMC presents, which is pinned first. Raises BMCError."""
    if scope.status.ssh_host_key is None:
        seen = await scope.deps.shell.host_key(address, port)
        await _pin(scope, "ssh_host_key", seen)
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
    await _pin(scope, field, pin.refused)
    await scope.commit()
    await scope.consume_operation()
    scope.event("Normal", reason, f"the {what} {pin.refused} is trusted from now on instead of {pin.sha256}")


def _is_verified_otherwise(scope: Scope) -> bool:
    """True when spec.tls of the BMC, which an administrator wrote, requires another verification than the pin."""
    tls = scope.obj.spec.tls
    return tls is not None and not isinstance(trust_of(tls, scope.deps.defaults), FirstUse)
