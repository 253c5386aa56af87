"""Sessions with BMCs: log out within a time limit, and advice for administrators about errors."""

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
        "if the certificate was replaced, set the new one in tls.fingerprint; otherwise check which device answers",
    ),
    (BMCHostKeyChanged, "if the BMC was replaced or reset, annotate it with operation=accept-host-key"),
    (BMCTLSError, "trust its certificate with tls.caSecretRef or tls.fingerprint, or name its CA in the configuration"),
    (BMCAuthError, "correct the BMCSecret"),
    (BMCForbidden, "give the account the privilege of an administrator"),
    (BMCUnreachable, "check its address, port and network"),
)


def explain(exc: BMCError) -> str:
    """The message of the error, followed by what an administrator can do."""
    message = str(exc).rstrip(". ")
    advice = next((text for kind, text in _ADVICE if isinstance(exc, kind)), "the operator retries")
    return f"{message}; {advice}"


async def log_out(pool: Pool, key: str, limit: float) -> None:
    """End the session with a BMC within `limit` seconds; a failure is only logged."""
    try:
        async with asyncio.timeout(limit):
            await pool.drop(key)
    except (TimeoutError, BMCError) as exc:
        _log.warning("session not closed; it expires on the BMC", bmc=key, error=str(exc) or "no answer in time")
