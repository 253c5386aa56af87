"""Starts and stops a Kubernetes control plane that has no nodes: objects are stored, collected and served."""

import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

TOOL = Path(__file__).parent.parent.parent / "tools" / "kube"
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
"""A test run that is killed leaves no control planes behind."""
READY_WITHIN = 60.0
"""Seconds; a machine under load takes several times the usual five."""
CONTROLLERS = (
    "garbagecollector",
    "namespace",
    "serviceaccount",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation",
)


def programs() -> dict[str, Path]:
    """Paths of etcd, kube-apiserver and kube-controller-manager. Builds what is missing (`make kube`)."""
    told = subprocess.run([TOOL], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: Path(path) for name, _, path in (line.partition("=") for line in told.splitlines())}


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


class KubeCluster:
    """One control plane. `start` before use, `stop` after; `kill_apiserver` and `start_apiserver` in between.

    kubeconfig is the administrator's. folder keeps the logs of the three programs. fsync: whether etcd waits for the
    disk; controllers: whether kube-controller-manager runs.
    """

    def __init__(self, folder: Path, *, fsync: bool = False, controllers: bool = True) -> None:
        self.folder = folder
        self._fsync, self._controllers = fsync, controllers
        self.port, self._etcd_port, self._peer_port, self._manager_port = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        self.etcd_url = f"http://127.0.0.1:{self._etcd_port}"
        self.token = secrets.token_hex(16)
        self.kubeconfig = folder / "kubeconfig"
        self.authority = folder / "apiserver" / "apiserver.crt"
        self._programs = programs()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __repr__(self) -> str:
        return f"<KubeCluster {self.url} in {self.folder}>"

    def start(self) -> None:
        """Start all three; returns when the API answers. Raises RuntimeError with the end of a log."""
        self._prepare()
        self.start_etcd()
        self.start_apiserver()
        self.kubeconfig.write_text(self.kubeconfig_of(self.token))
        if self._controllers:
            self._start_manager()

    def pids(self) -> list[int]:
        """Of the programs that run now."""
        return [process.pid for process in self._running.values()]

    def stop(self) -> None:
        """Stop all three and wait for each."""
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            self._end(name, signal.SIGKILL if name == "etcd" else signal.SIGTERM)

    def kubeconfig_of(self, token: str, *, url: str = "", namespace: str = "default") -> str:
        """The text of a kubeconfig for whoever holds the token; url where a proxy stands before the API."""
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "kube",
                "clusters": [{"name": "kube", "cluster": self._reached(url or self.url)}],
                "users": [{"name": "user", "user": {"token": token}}],
                "contexts": [{"name": "kube", "context": {"cluster": "kube", "user": "user", "namespace": namespace}}],
            }
        )

    def _reached(self, url: str) -> dict[str, str]:
        if url.startswith("http://"):
            return {"server": url}
        return {"server": url, "certificate-authority": str(self.authority)}

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self.folder / "sa.key").write_bytes(private)
        (self.folder / "sa.pub").write_bytes(public)
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,admin,"system:masters"\n')

    def start_etcd(self) -> None:
        """Start etcd on its folder, as new or as it was left."""
        url, peer = self.etcd_url, f"http://127.0.0.1:{self._peer_port}"
        self._spawn(
            "etcd", "--data-dir", str(self.folder / "etcd"), "--log-level", "error",
            *(() if self._fsync else ("--unsafe-no-fsync",)),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        )  # fmt: skip
        self._wait(f"{url}/health", "etcd")

    def start_apiserver(self, *flags: str) -> None:
        """Start kube-apiserver, and wait until it is ready. Raises RuntimeError with the end of its log."""
        folder = self.folder
        self._spawn(
            "kube-apiserver", f"--etcd-servers={self.etcd_url}", f"--secure-port={self.port}",
            "--bind-address=127.0.0.1", f"--cert-dir={folder / 'apiserver'}",
            f"--token-auth-file={folder / 'tokens.csv'}", f"--service-account-key-file={folder / 'sa.pub'}",
            f"--service-account-signing-key-file={folder / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
            "--enable-priority-and-fairness=false", *flags,
        )  # fmt: skip
        self._wait(f"{self.url}/readyz", "kube-apiserver")

    def kill_apiserver(self) -> None:
        """End kube-apiserver at once, as a crash would; etcd keeps what was written."""
        self._end("kube-apiserver", signal.SIGKILL)

    def stop_apiserver(self) -> None:
        """End kube-apiserver in its own time (some seconds)."""
        self._end("kube-apiserver", signal.SIGTERM)

    def _start_manager(self) -> None:
        self._spawn(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig}", f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false", f"--secure-port={self._manager_port}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'manager'}", f"--root-ca-file={self.authority}",
        )  # fmt: skip

    def _spawn(self, name: str, *args: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            # The signal comes when the thread ends that started the program: a passing one would take it along.
            guarded = WITH_PARENT if threading.current_thread() is threading.main_thread() else ()
            command = [*guarded, str(self._programs[name]), *args]
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, url: str, name: str) -> None:
        # The API server makes its certificate at its first start.
        while url.startswith("https") and not self.authority.exists() and self._running[name].poll() is None:
            time.sleep(0.05)
        context = ssl.create_default_context(cafile=str(self.authority)) if url.startswith("https") else None
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.token}"})  # noqa: S310 - https of our own
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and self._running[name].poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=2, context=context):  # noqa: S310 - likewise
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{name} is not ready after {READY_WITHIN:.0f} s; the end of its log:\n{tail}")


@contextmanager
def running() -> Iterator[KubeCluster]:
    """A control plane in a folder of its own, which goes with it, however the block ends."""
    folder = _scratch()
    cluster = KubeCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _scratch() -> Path:
    """A folder for a control plane: in memory where there is /dev/shm, so that etcd waits for no disk."""
    shared = Path("/dev/shm")
    base = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="metal-kube-", dir=base))
