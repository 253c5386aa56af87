"""An OCI registry on loopback with injectable faults."""

import asyncio
import base64
import hashlib
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from metal.boot.manifest import INDEXES, MANIFESTS

INDEX, DOCKER_LIST = INDEXES
MANIFEST, DOCKER_MANIFEST = MANIFESTS
KERNEL, INITRAMFS = b"kernel " * 1000, b"initramfs " * 20000


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Faults:
    """Faults of the next blobs or manifests."""

    lie: bool = False
    """Other bytes of the same length."""
    truncate: bool = False
    """Hang up in the middle."""
    silent: bool = False
    """Send headers, then nothing."""
    long: bool = False
    """One byte too many, without a length."""
    status: int = 0
    """An HTTP status instead of the content."""
    pause: float = 0.0
    """Seconds before the content."""
    redirect: str = ""
    """Send blobs' askers there."""


@dataclass
class Registry:
    """Content by digest, tags by name, and the recorded requests."""

    port: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    token_authorizations: list[str] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    token: str = ""
    """When set, a Bearer token is needed; /token gives it out."""
    realm: str = ""
    """Where tokens are said to be, if not there."""
    challenges: list[str] = field(default_factory=list)
    """WWW-Authenticate headers in place of the usual one."""
    account: str = ""
    """When set, user:password that Basic authentication, or the token service, requires."""
    refresh_token: str = ""
    """When set, the identity token that the token service requires."""
    validity: Any = 300
    """expires_in of tokens."""
    forms: list[dict[str, str]] = field(default_factory=list)
    """What was sent to the token service by POST."""
    scheme: str = "http"
    largest_load: int = 0
    """Most requests at the same time."""
    load: int = 0

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        self.blobs[digest(content)] = content
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    def manifest(self, layers: list[dict[str, Any]], *, tag: str = "", config: Any = None, type: str = MANIFEST) -> Any:
        body = {"schemaVersion": 2, "mediaType": type, "layers": layers}
        raw = json.dumps(config if config is not None else {"commandLine": "console=ttyS0 rdinit=/init"}).encode()
        body["config"] = self.blob(raw, "application/vnd.ironcore.image.config.v1+json")
        return self.put(body, type, tag)

    def put(self, body: Any, media_type: str, tag: str = "") -> dict[str, Any]:
        raw = json.dumps(body).encode()
        for name in {digest(raw), tag} - {""}:
            self.manifests[name] = (media_type, raw)
        return {"mediaType": media_type, "digest": digest(raw), "size": len(raw)}

    def index(self, entries: dict[str, Any], *, tag: str, type: str = INDEX) -> Any:
        manifests = [entry | {"platform": {"architecture": arch, "os": "linux"}} for arch, entry in entries.items()]
        return self.put({"schemaVersion": 2, "mediaType": type, "manifests": manifests}, type, tag)

    def os_image(self, *, tag: str = "1", kernel: bytes = KERNEL, initramfs: bytes = INITRAMFS) -> Any:
        prefix = "application/vnd.ironcore.image"
        return self.manifest(
            [self.blob(kernel, f"{prefix}.kernel"), self.blob(initramfs, f"{prefix}.initramfs")], tag=tag
        )

    def asked(self, part: str) -> int:
        return sum(part in path for path in self.requests)


def application(registry: Registry) -> web.Application:
    app = web.Application()

    async def manifests(request: web.Request) -> web.StreamResponse:
        if (denied := _denied(registry, request)) is not None:
            return denied
        found = registry.manifests.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        media_type, raw = found
        return await _send(registry, request, raw, media_type)

    async def blobs(request: web.Request) -> web.StreamResponse:
        if (denied := _denied(registry, request)) is not None:
            return denied
        if registry.faults.redirect and not request.path.startswith("/cdn"):
            raise web.HTTPTemporaryRedirect(registry.faults.redirect + request.path)
        content = registry.blobs.get(request.match_info["name"])
        if content is None:
            raise web.HTTPNotFound
        return await _send(registry, request, content, "application/octet-stream")

    async def token(request: web.Request) -> web.StreamResponse:
        return await _token(registry, request)

    app.router.add_get("/v2/{repository:.+}/manifests/{name}", manifests)
    app.router.add_get("/{cdn:(cdn/)?}v2/{repository:.+}/blobs/{name}", blobs)
    app.router.add_get("/token", token)
    app.router.add_post("/token", token)
    app.middlewares.append(_counted(registry))
    return app


async def _token(registry: Registry, request: web.Request) -> web.StreamResponse:
    registry.requests.append(request.path_qs)
    form = {key: str(value) for key, value in (await request.post()).items()}
    registry.forms += [form] if form else []
    registry.token_authorizations.append(request.headers.get("Authorization", ""))
    if registry.refresh_token and form.get("refresh_token") != registry.refresh_token:
        raise web.HTTPUnauthorized
    if registry.account and registry.token_authorizations[-1] != basic(registry.account):
        raise web.HTTPUnauthorized
    return web.json_response({"token": registry.token, "expires_in": registry.validity})


def _counted(registry: Registry) -> Any:
    @web.middleware
    async def counted(request: web.Request, handler: Any) -> Any:
        registry.load += 1
        registry.largest_load = max(registry.load, registry.largest_load)
        try:
            return await handler(request)
        finally:
            registry.load -= 1

    return counted


def basic(account: str) -> str:
    return f"Basic {base64.b64encode(account.encode()).decode()}"


def _denied(registry: Registry, request: web.Request) -> web.Response | None:
    registry.requests.append(request.path)
    registry.authorizations.append(request.headers.get("Authorization", ""))
    wanted = f"Bearer {registry.token}" if registry.token else basic(registry.account) if registry.account else ""
    if not wanted or registry.authorizations[-1] == wanted:
        return None
    realm = registry.realm or f"{registry.scheme}://{registry.name}/token"
    usual = f'Bearer realm="{realm}",service="test"' if registry.token else 'Basic realm="test"'
    answer = web.Response(status=401)
    for challenge in registry.challenges or [usual]:
        answer.headers.add("WWW-Authenticate", challenge)
    return answer


async def _send(registry: Registry, request: web.Request, content: bytes, media_type: str) -> web.StreamResponse:
    faults = registry.faults
    await asyncio.sleep(faults.pause)
    if faults.status:
        return web.Response(status=faults.status)
    if faults.lie:
        content = bytes(len(content))
    response = web.StreamResponse(headers={"Content-Type": media_type})
    response.content_length = None if faults.long else len(content)
    await response.prepare(request)
    if faults.silent:
        await asyncio.sleep(60)
    if faults.truncate:
        await response.write(content[: len(content) // 2])
        assert request.transport is not None
        request.transport.close()
        return response
    await response.write(content + b"x" if faults.long else content)
    await response.write_eof()
    return response


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[Registry]:
    """A registry that listens on a free port."""
    registry = Registry(scheme="https" if tls else "http")
    runner = web.AppRunner(application(registry), handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        registry.port = runner.addresses[0][1]
        yield registry
    finally:
        await runner.cleanup()
