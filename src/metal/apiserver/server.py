"""The embedded API: storage, backend, TLS and HTTP server, started and stopped together."""

import random
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from metal.apiserver.auth import kubeconfig
from metal.apiserver.auth.access import MASTERS
from metal.apiserver.auth.addresses import EVERYWHERE, reachable_names
from metal.apiserver.auth.serving import ServingCertificate
from metal.apiserver.auth.tokens import Tokens
from metal.apiserver.backend import Backend
from metal.apiserver.client import InProcessClient
from metal.apiserver.machinery.users import User
from metal.apiserver.storage.journal import Journal, MemoryJournal
from metal.apiserver.storage.sqlite import SqliteJournal
from metal.apiserver.web.app import application
from metal.kube.client.http import Observer
from metal.kube.controller.tasks import completed
from metal.kube.meta.clock import Clock
from metal.listener.limits import ConnectionLimits
from metal.listener.metrics import Metrics
from metal.listener.server import RunningServer, listen

SHUTDOWN_SECONDS = 1.0


class EmbeddedAPI:
    """A Kubernetes API in this process, and over TLS once it listens, with the `certificate`.

    data_dir: folder for objects, keys and tokens (mode 0700); None stores nothing (tests, virtual time).
    limits: those of connections, which apply before authentication.
    """

    certificate: ServingCertificate

    def __init__(
        self, data_dir: Path | None, clock: Clock, *, rng: random.Random | None = None,
        limits: ConnectionLimits | None = None, metrics: Metrics | None = None,
    ) -> None:  # fmt: skip
        self._data_dir = data_dir
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._clock = clock
        self._running: RunningServer | None = None
        self._limits, self._metrics = limits or ConnectionLimits(), metrics
        self._url = ""
        if data_dir is not None:
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        journal: Journal = MemoryJournal() if data_dir is None else SqliteJournal(data_dir / "state.db")
        self.backend = Backend(clock, journal=journal, rng=rng, key=None if data_dir is None else data_dir / "sa.key")

    def __repr__(self) -> str:
        return f"<EmbeddedAPI {self._url or 'in process'} version={self.backend.store.version}>"

    async def start(self) -> None:
        """Load the stored objects and start to serve in-process clients. Raises JournalError."""
        await self.backend.start()

    async def listen(self, host: str = "127.0.0.1", port: int = 8443, *, advertise: str = "") -> int:
        """Serve over TLS and write the kubeconfig. Port 0 selects a free port; returns the port. Raises TokenError.

        The certificate has the names of loopback and of `host`, or all of this machine's when that stands for every
        address, and the host of `advertise`: the URL under which clients elsewhere connect, which the kubeconfig has.
        """
        return await completed(self._listen(host, port, advertise))

    async def _listen(self, host: str, port: int, advertise: str) -> int:
        folder = self._folder()
        tokens = Tokens.load(folder / "tokens.csv")
        self.certificate = certificate = self._serving(folder, host, advertise)
        self._running = await listen(
            application(self.backend, tokens, folder), host, port, self._limits,
            name="api", tls=certificate.open(), metrics=self._metrics, shutdown_seconds=SHUTDOWN_SECONDS,
        )  # fmt: skip
        port = self._running.port
        reached = "127.0.0.1" if host in EVERYWHERE else host
        self._url = advertise or (f"https://[{reached}]:{port}" if ":" in reached else f"https://{reached}:{port}")
        certificate.follow_authority(
            lambda pem: kubeconfig.write(self.kubeconfig, server=self._url, authority=pem, token=tokens.admin)
        )
        self.backend.tasks.spawn("serving certificate", certificate.run)
        return port

    def _serving(self, folder: Path, host: str, advertise: str) -> ServingCertificate:
        hostname = urlsplit(advertise).hostname
        advertised = (hostname,) if hostname else ()
        certificate = ServingCertificate(folder, lambda: (*reachable_names(host), *advertised), self._clock)
        self.backend.health.add("serving-certificate", certificate.failure)
        return certificate

    async def crash(self) -> None:
        """Wait for the first background task that ends, and raise Crashed with its name."""
        await self.backend.tasks.crash()

    @property
    def url(self) -> str:
        """URL of the API; empty before `listen`."""
        return self._url

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator, written by `listen`."""
        return self._folder() / "kubeconfig"

    def _folder(self) -> Path:
        if self._data_dir is not None:
            return self._data_dir
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="metal-api-")
        return Path(self._scratch.name)

    async def stop(self) -> None:
        """End every watch, finish pending writes, and close the sockets, within two seconds."""
        # Watches end first, because open connections would delay the shutdown of the server.
        self.backend.store.hub.close()
        if self._running is not None:
            await self._running.aclose()
            self._running = None
        await self.backend.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def client(
        self, user: str = "metal-operator", groups: Sequence[str] = (MASTERS,), *, observer: Observer | None = None
    ) -> InProcessClient:
        """An in-process client that acts as `user`, with administrator rights unless other groups are given.

        A user outside system:masters is subject to the stored Roles and bindings, as over HTTP:
        `client(*service_account("metal-system", "manager"))` may do what that ServiceAccount may.
        """
        return InProcessClient(self.backend, User(user, groups=tuple(groups)), observer=observer)

    async def install_crds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Create or update CRDs, as `kubectl apply --server-side --force-conflicts` does."""
        await self.backend.install_crds([dict(crd) for crd in definitions])
