"""Dealing with BMC sessions: hang up without waiting for ever, and say what can be done about an error."""

import asyncio

import structlog

from metal.bmc.errors import (
    BMCAuthError,
    BMCCertificateChanged,
    BMCError,
    BMCForbidden,
    BMCHostKeyChanged,
    BMCTLSError,
    BMCUnreachable,
)
from metal.bmc.pool import Pool

_log = structlog.get_logger(__name__)

_ADVICE: tuple[tuple[type[BMCError], str], ...] = (
    (
        BMCCertificateChanged,
        "if that is right, set the new one in tls.fingerprint; otherwise find out who answers there",
    ),
    (BMCHostKeyChanged, "if that is right, annotate the BMC with operation=accept-host-key"),
    (BMCTLSError, "trust its certificate with tls.caSecretRef or tls.fingerprint, or name its CA in the configuration"),
    (BMCAuthError, "correct the BMCSecret"),
    (BMCForbidden, "give the account the privilege of an administrator"),
    (BMCUnreachable, "check its address, port and network"),
)


def explain(exc: BMCError) -> str:
    """The error's own sentence, and what a person can do about it."""
    said = str(exc).rstrip(". ")
    advice = next((text for kind, text in _ADVICE if isinstance(exc, kind)), "it is tried again")
    return f"{said}; {advice}"


async def log_out(pool: Pool, key: str, limit: float) -> None:
    """Drop a BMC's session within `limit` seconds; what the BMC does about it is only logged."""
    try:
        async with asyncio.timeout(limit):
            await pool.drop(key)
    except (TimeoutError, BMCError) as exc:
        _log.warning("session was not closed; it expires by itself", bmc=key, error=str(exc) or "no answer in time")
