"""How one BMC's certificate is judged: by a CA, by its fingerprint, or, only when asked, not at all."""

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
    """Whose certificate is believed: the fingerprint's alone, else any the CA (or the system's CAs) signed."""

    verify: bool = True
    """False believes anyone; must be asked for."""
    ca_pem: str = field(default="", repr=False)
    fingerprint: str = ""


VERIFY = Trust()


def policy(trust: Trust) -> SSLPolicy:
    """What aiohttp takes as `ssl`: a fingerprint pins, else the chain is verified, else (verify=False) anything goes.

    Raises: ValueError when the fingerprint is no SHA-256 in hex, or ca_pem holds no certificate.
    """
    if trust.fingerprint:
        return aiohttp.Fingerprint(parse_fingerprint(trust.fingerprint))
    if not trust.verify:
        return False
    return _verifying_context(trust.ca_pem)


async def first_fingerprint(address: str, port: int, *, timeout: float = 10.0) -> str:
    """SHA-256 of the certificate that is shown at this address, in hexadecimal; nothing is said to whoever shows it.

    Raises: BMCUnreachable, BMCTimeout, BMCTLSError. timeout is in seconds.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    name = f"{address}:{port}"
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(address, port, ssl=context)
    except TimeoutError:
        raise BMCTimeout(f"{name} did not show its certificate within {timeout:g} s.") from None
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
    """Shared among BMCs: a context costs milliseconds and hundreds of kilobytes."""
    if not ca_pem:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=ca_pem)
    except (ssl.SSLError, ValueError):
        raise ValueError("ca_pem must hold at least one certificate in PEM form") from None
