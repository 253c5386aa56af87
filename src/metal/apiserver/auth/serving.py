"""The API's serving certificate, renewed and exchanged while the API serves.

`open` creates or reads the files and returns the TLS context of the listener. `run` looks at them every CHECK_SECONDS:
when the certificate expires soon, or this machine has another name or address, `tls.ensure` issues another one, and the
same context loads it. New connections get the new certificate; open ones go on with the old one. A renewal that fails,
on a full disk for example, is logged and tried again at the next look; `failure` says when the certificate that is
served has expired, or has not begun to be valid.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import structlog

from metal.apiserver.auth import tls
from metal.apiserver.auth.tokens import TokenError
from metal.kube.meta.clock import Clock

CHECK_SECONDS = 300.0
"""Seconds between two looks; after so long, a new address of this machine is in the certificate."""

log = structlog.get_logger("metal.apiserver")


class ServingCertificate:
    """The certificate of one listener, in `folder`. hosts: its names and addresses now, besides those of loopback."""

    def __init__(self, folder: Path, hosts: Callable[[], Iterable[str]], clock: Clock) -> None:
        self._folder, self._hosts, self._clock = folder, hosts, clock
        self._context: ssl.SSLContext | None = None
        self._served: tuple[bytes, datetime, datetime] | None = None
        self._authority = b""
        self._on_authority: Callable[[bytes], None] = lambda authority: None

    def open(self) -> ssl.SSLContext:
        """The TLS context, with a certificate that lasts. Raises TokenError and OSError."""
        identity = tls.ensure(self._folder, self._hosts(), self._clock())
        self._context = identity.context()
        self._took(identity)
        return self._context

    def follow_authority(self, handle: Callable[[bytes], None]) -> None:
        """Call `handle` with the certificate of the authority (PEM), now and whenever there is another one."""
        self._on_authority = handle
        handle(self._authority)

    async def run(self, every: float = CHECK_SECONDS) -> None:
        """Renew whenever it is due, until cancelled."""
        while True:
            await asyncio.sleep(every)
            try:
                self.renew()
            except (TokenError, OSError, ValueError) as error:
                log.warning("certificate.not_renewed", error=str(error), expires=self._expires())

    def renew(self) -> bool:
        """Issue and serve another certificate when it is due; whether it was. Raises TokenError, OSError."""
        if self._context is None or self._served is None:
            return False
        identity = tls.ensure(self._folder, self._hosts(), self._clock())
        if identity.certificate.read_bytes() == self._served[0]:
            return False
        self._context.load_cert_chain(identity.certificate, identity.key)
        self._took(identity)
        log.info("certificate.renewed", expires=self._expires())
        return True

    def failure(self) -> str:
        """Why clients refuse the certificate that is served now; empty when they do not."""
        if self._served is None:
            return ""
        _, begins, ends = self._served
        now = self._clock()
        if now >= ends:
            return f"the serving certificate expired at {ends:%Y-%m-%dT%H:%M:%SZ}"
        return f"the serving certificate is valid from {begins:%Y-%m-%dT%H:%M:%SZ}" if now < begins else ""

    def _took(self, identity: tls.Identity) -> None:
        self._served = (identity.certificate.read_bytes(), *tls.validity(identity.certificate))
        authority = identity.authority.read_bytes()
        if authority != self._authority:
            self._authority = authority
            self._on_authority(authority)

    def _expires(self) -> str:
        return "" if self._served is None else f"{self._served[2]:%Y-%m-%dT%H:%M:%SZ}"
