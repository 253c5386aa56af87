"""Verification of a BMC's certificate: by a CA, by its fingerprint, or, if configured, not at all."""

import asyncio
import hashlib
import re
import ssl
from dataclasses import dataclass, field
from functools import lru_cache

import aiohttp

from metal.redfish.errors import BMCTimeout, BMCTLSError, BMCUnreachable

SSLPolicy = ssl.SSLContext | aiohttp.Fingerprint | bool
_SHA256_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Trust:
    """Which certificate is trusted: the one with the fingerprint, else any that the CA (or a system CA) signed."""

    verify: bool = True
    """False accepts any certificate; must be configured."""
    ca_pem: str = field(default="", repr=False)
    fingerprint: str = ""


VERIFY = Trust()


def policy(trust: Trust) -> SSLPolicy:
    """The value of aiohttp's `ssl` argument: a pin, else verification of the chain, else (verify=False) none.

    Raises: ValueError when the fingerprint is not a SHA-256 in hex, or ca_pem holds no certificate.
    """
    if trust.fingerprint:
        return aiohttp.Fingerprint(parse_fingerprint(trust.fingerprint))
    if not trust.verify:
        return False
    return _verifying_context(trust.ca_pem)


async def first_fingerprint(address: str, port: int, *, timeout: float = 10.0) -> str:
    """SHA-256 in hexadecimal of the certificate presented at this address. No request is sent.

    Raises: BMCUnreachable, BMCTimeout, BMCTLSError. timeout is in seconds.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name = f"{address}:{port}"
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(address, port, ssl=context)
    except TimeoutError:
        raise BMCTimeout(f"{name} did not present its certificate within {timeout:g} s.") from None
    except ssl.SSLError:
        raise BMCTLSError(f"TLS with {name} failed; is https the right scheme for this port?") from None
    except OSError as error:
        raise BMCUnreachable(f"No connection to {name}: {error.strerror or type(error).__name__}.") from None
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return hashlib.sha256(shown or b"").hexdigest()


def parse_fingerprint(text: str) -> bytes:
    """Thirty-two bytes from hex, with or without colons and a `sha256:` prefix."""
    digits = text.strip().lower().removeprefix("sha256:").replace(":", "").replace(" ", "")
    if not _SHA256_HEX.fullmatch(digits):
        raise ValueError("fingerprint must be the certificate's SHA-256 as 64 hex digits, with or without colons")
    return bytes.fromhex(digits)


@lru_cache(maxsize=32)
def _verifying_context(ca_pem: str) -> ssl.SSLContext:
    """Shared among BMCs: a context takes milliseconds to create and hundreds of kilobytes."""
    if not ca_pem:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=ca_pem)
    except (ssl.SSLError, ValueError):
        raise ValueError("ca_pem must hold at least one certificate in PEM form") from None
