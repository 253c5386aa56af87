"""Where the API is and which credentials to use: from a kubeconfig file or from a pod's service account."""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

S = TypeVar("S", bound=msgspec.Struct)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(Exception):
    """The kubeconfig is missing or unusable; the message says what to change."""


@dataclass(frozen=True)
class Connection:
    """How to reach an API. token is asked before each request, because tokens of pods are replaced while they run."""

    url: str
    """Base URL, without a slash at the end."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """None for http."""
    token: Callable[[], str] | None = field(default=None, repr=False)
    """Bearer token, when that is how to log in."""
    server_name: str | None = None
    """Name to expect in the server's certificate, when it is not the host of the URL."""
    namespace: str = "default"
    """Namespace to use when none is named."""


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(msgspec.Struct, rename={"token_file": "tokenFile", "auth_provider": "auth-provider"}):
    token: str = ""
    token_file: str = ""
    client_certificate: str = msgspec.field(default="", name="client-certificate")
    client_certificate_data: str = msgspec.field(default="", name="client-certificate-data")
    client_key: str = msgspec.field(default="", name="client-key")
    client_key_data: str = msgspec.field(default="", name="client-key-data")
    username: str = ""
    exec: Any = None
    auth_provider: Any = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _File(msgspec.Struct, rename={"current_context": "current-context"}):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


def load(
    path: Path | str | None = None,
    context: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Read a kubeconfig: of `path`, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    context replaces current-context. Raises KubeconfigError.
    """
    environment = os.environ if env is None else env
    path = path or environment.get("KUBECONFIG") or None
    if path is None and "KUBERNETES_SERVICE_HOST" in environment and (service_account / "token").exists():
        return in_cluster(environment, service_account)
    return from_file(Path(path or Path.home() / ".kube" / "config"), context)


def in_cluster(env: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection of a pod: its service account's token (read again when replaced) and the cluster's CA."""
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = service_account / "namespace"
    return Connection(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=_context(_read(service_account / "ca.crt").decode()),
        token=TokenFile(service_account / "token"),
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
    )


def from_file(path: Path, context: str | None = None) -> Connection:
    """The connection that a kubeconfig file describes. Files it names are relative to it. Raises KubeconfigError."""
    config = _parse(path)
    name = context or config.current_context
    if not name:
        raise KubeconfigError(f"{path}: no context: set current-context, or name one of {_names(config.contexts)}")
    chosen = _named(path, "context", config.contexts, name).context
    cluster = _named(path, "cluster", config.clusters, chosen.cluster).cluster
    user = (_named(path, "user", config.users, chosen.user).user if chosen.user else None) or _User()
    _refuse_unknown(path, cluster, user)
    return Connection(
        url=cluster.server.rstrip("/"),
        tls=_tls(path, cluster, user) if cluster.server.startswith("https://") else None,
        token=_token(path, user),
        server_name=cluster.tls_server_name or None,
        namespace=chosen.namespace or "default",
    )


class TokenFile:
    """Reads a token from a file that others replace; reads again only when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._token = ""

    def __repr__(self) -> str:
        return f"<TokenFile {self._path}>"

    def __call__(self) -> str:
        """The token. Raises KubeconfigError while the file cannot be read and was never read before."""
        try:
            stat = self._path.stat()
            if self._seen != (stat.st_mtime_ns, stat.st_ino):
                self._token = self._path.read_text().strip()
                self._seen = (stat.st_mtime_ns, stat.st_ino)
        except OSError as exc:
            if not self._token:
                raise KubeconfigError(f"{self._path}: cannot read the token: {exc.strerror}") from exc
        return self._token


def _parse(path: Path) -> _File:
    try:
        return msgspec.convert(yaml.safe_load(_read(path)) or {}, _File)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise KubeconfigError(f"{path}: not YAML{where}") from None  # the text may hold secrets
    except msgspec.ValidationError as exc:
        raise KubeconfigError(f"{path}: {exc}") from None


def _refuse_unknown(path: Path, cluster: _Cluster, user: _User) -> None:
    if not cluster.server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{path}: cluster.server is {cluster.server!r}: it must begin with https:// or http://")
    unusable = {
        "user.exec": user.exec is not None,
        "user.auth-provider": user.auth_provider is not None,
        "user.username": bool(user.username),
        "cluster.proxy-url": bool(cluster.proxy_url),
    }
    for name, used in unusable.items():
        if used:
            raise KubeconfigError(
                f"{path}: {name} is not supported: use a token or a client certificate, without proxy"
            )


def _token(path: Path, user: _User) -> Callable[[], str] | None:
    if user.token:
        token = user.token
        return lambda: token
    return TokenFile(path.parent / user.token_file) if user.token_file else None


def _tls(path: Path, cluster: _Cluster, user: _User) -> ssl.SSLContext:
    authority = _pem(path, "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    context = _context(authority.decode() if authority else None)
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _pem(path, "client-certificate", user.client_certificate_data, user.client_certificate)
    key = _pem(path, "client-key", user.client_key_data, user.client_key)
    if bool(certificate) != bool(key):
        raise KubeconfigError(f"{path}: client-certificate and client-key must be given together")
    if certificate and key:
        _load_client_certificate(path, context, certificate, key)
    return context


def _context(authority: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=authority)
    except ssl.SSLError as exc:
        raise KubeconfigError(f"certificate-authority is not a PEM certificate: {exc.reason}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_client_certificate(path: Path, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate; OpenSSL takes it only from a file, which lives for this call and for us alone."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as exc:
            raise KubeconfigError(f"{path}: client certificate and key do not fit together: {exc.reason}") from None


def _pem(path: Path, name: str, data: str, file: str) -> bytes:
    """PEM, inline (base64) or from a file; the inline one wins, as in kubectl."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            raise KubeconfigError(f"{path}: {name}-data is not base64") from None
    return _read(path.parent / file) if file else b""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise KubeconfigError(f"{path}: {exc.strerror}") from exc


def _named(path: Path, what: str, entries: list[Any] | None, name: str) -> Any:
    for entry in entries or ():
        if entry.name == name:
            return entry
    raise KubeconfigError(f"{path}: no {what} is called {name!r}: there is {_names(entries)}")


def _names(entries: list[Any] | None) -> str:
    return ", ".join(repr(entry.name) for entry in entries or ()) or "none"
