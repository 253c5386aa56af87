"""Debian's docker-registry with passwords, a token service, signed images and TLS of an own authority."""

import asyncio
import base64
import contextlib
import json
import shutil
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509 import load_pem_x509_certificate

from metal.boot.cache import BlobCache
from metal.boot.errors import ImageError
from metal.boot.images import RegistryImages
from metal.boot.manifest import MANIFESTS
from metal.boot.registry.credentials import AuthFile
from metal.boot.registry.settings import RegistryClientSettings, RegistryServer, SigningKeys
from metal.boot.registry.signatures import PAYLOAD, SIGNATURE
from metal.boot.registry_client import RegistryClient
from tests.boot.registry import basic
from tests.kube.client.pki import Authority, Pair
from tests.wire.test_docker_registry import INITRAMFS, KERNEL, Foreign, digest, free_port, listening

pytestmark = [pytest.mark.wire, pytest.mark.needs("docker-registry")]
USER, PASSWORD = "robot", "s3cret-w0rd"
HTPASSWD = f"{USER}:$2b$05$abcdefghijklmnopqrstuuxkfnsT92cmKajQ/1kES5QAXehS5Jpc.\n"
"""bcrypt of the password."""
SERVICE, ISSUER = "registry.test", "issuer.test"


@dataclass
class TokenService:
    """A token service that signs what is asked for, for the user, with a certificate that the registry trusts."""

    pair: Pair
    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)

    def token(self, name: str, actions: list[str], seconds: int = 300) -> str:
        certificate = load_pem_x509_certificate(self.pair.certificate)
        chain = [base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()]
        now = int(time.time())
        claims = {
            "iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": now + seconds, "nbf": now - 10, "iat": now, "jti": "1",
            "access": [{"type": "repository", "name": name, "actions": actions}],
        }  # fmt: skip
        text = ".".join(map(segment, ({"typ": "JWT", "alg": "ES256", "x5c": chain}, claims)))
        key = serialization.load_pem_private_key(self.pair.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        if request.headers.get("Authorization") != basic(f"{USER}:{PASSWORD}"):
            raise web.HTTPUnauthorized
        _, name, actions = request.query["scope"].split(":")
        return web.json_response({"token": self.token(name, actions.split(","))})


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def segment(body: Any) -> str:
    return encoded(json.dumps(body).encode())


@dataclass
class Private:
    """A docker-registry over TLS, and what a client needs to read it."""

    folder: Path
    authority: Authority
    port: int
    pushed: Foreign

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def log_in(self, password: str = PASSWORD) -> None:
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        (self.folder / "config.json").write_text(json.dumps({"auths": {self.name: {"auth": auth}}}))

    @contextlib.asynccontextmanager
    async def images(self, keys: tuple[SigningKeys, ...] = ()) -> AsyncIterator[RegistryImages]:
        servers = (RegistryServer(self.name, str(self.folder / "ca.pem")),)
        settings = RegistryClientSettings(allowed=(self.name,), servers=servers, keys=keys)
        client = RegistryClient(settings, credentials=[AuthFile(self.folder / "config.json")])
        made = RegistryImages(client, BlobCache(self.folder / "cache", 10**9))
        await made.start()
        try:
            yield made
        finally:
            await made.aclose()

    async def boots(self, images: RegistryImages, reference: str = "team/os:1") -> None:
        plan = (await images.resolve(f"{self.name}/{reference}", "amd64")).plan(ignition=True)
        assert (await images.open(plan.kernel)).read_bytes() == KERNEL
        assert (await images.open(plan.initramfs)).read_bytes() == INITRAMFS


@contextlib.asynccontextmanager
async def running(
    folder: Path, authority: Authority, auth: dict[str, Any], authorization: str
) -> AsyncIterator[Private]:
    """A docker-registry with TLS; `authorization` is for pushes."""
    binary = shutil.which("docker-registry")
    assert binary
    port, pair = free_port(), authority.issue("registry")
    for name, content in (("tls.pem", pair.certificate), ("tls.key", pair.key), ("ca.pem", authority.pem)):
        (folder / name).write_bytes(content)
    http = {
        "addr": f"127.0.0.1:{port}",
        "tls": {"certificate": str(folder / "tls.pem"), "key": str(folder / "tls.key")},
    }
    storage = {"filesystem": {"rootdirectory": str(folder / "storage")}}
    config = {"version": 0.1, "log": {"level": "error"}, "storage": storage, "http": http, "auth": auth}
    (folder / "registry.json").write_text(json.dumps(config))
    with (folder / "registry.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            binary, "serve", str(folder / "registry.json"), stdout=log, stderr=log
        )
    try:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority.pem.decode()))
        async with aiohttp.ClientSession(headers={"Authorization": authorization}, connector=connector) as session:
            await listening(session, f"https://127.0.0.1:{port}", process)
            yield Private(folder, authority, port, Foreign(port, session, scheme="https"))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@pytest.fixture
async def private(tmp_path: Path) -> AsyncIterator[Private]:
    """With passwords of its own (htpasswd)."""
    (tmp_path / "htpasswd").write_text(HTPASSWD)
    auth = {"htpasswd": {"realm": "private", "path": str(tmp_path / "htpasswd")}}
    async with running(tmp_path, Authority(), auth, basic(f"{USER}:{PASSWORD}")) as registry:
        yield registry


async def test_a_private_registry_is_read_with_its_password_and_authority(private: Private) -> None:
    """Without credentials, or with wrong ones, it denies; the right ones are used without a restart."""
    await private.pushed.image("1")
    async with private.images() as images:
        for password in ("", "wrong"):
            if password:
                private.log_in(password)
            with pytest.raises(ImageError) as caught:
                await images.resolve(f"{private.name}/team/os:1", "amd64")
            assert caught.value.reason == "RegistryDenied"
            assert (f"the credentials for {private.name} of file" in str(caught.value)) is bool(password)
        private.log_in()
        await private.boots(images)


async def test_a_token_service_gives_tokens_for_each_repository(tmp_path: Path) -> None:
    """docker-registry verifies the signature, the service and the scope; a password of before is rejected."""
    authority = Authority()
    service = TokenService(authority.issue("issuer"))
    app = web.Application()
    app.router.add_get("/token", service.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    tls = authority.server_context(tmp_path)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    service.port = runner.addresses[0][1]
    (tmp_path / "bundle.pem").write_bytes(authority.pem)
    options = {"realm": f"https://127.0.0.1:{service.port}/token", "service": SERVICE, "issuer": ISSUER}
    auth = {"token": {**options, "rootcertbundle": str(tmp_path / "bundle.pem")}}
    try:
        push = f"Bearer {service.token('team/os', ['pull', 'push'])}"
        async with running(tmp_path, authority, auth, push) as registry, registry.images() as images:
            await registry.pushed.image("1")
            registry.log_in("of before")
            with pytest.raises(ImageError, match="gives no token"):
                await images.resolve(f"{registry.name}/team/os:1", "amd64")
            service.asked.clear()
            registry.log_in()
            await registry.boots(images)
            assert service.asked == [{"scope": "repository:team/os:pull", "service": SERVICE}]
            with pytest.raises(ImageError, match="does not have this image"):
                await images.resolve(f"{registry.name}/team/other:1", "amd64")
            assert service.asked[1]["scope"] == "repository:team/other:pull"
    finally:
        await runner.cleanup()


async def test_a_signature_that_a_real_registry_stores_is_verified(private: Private) -> None:
    """In cosign's layout; an image that is signed with another key is refused."""
    private.log_in()
    pushed = (await private.pushed.image("1"))["digest"]
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    for name, each in (("cosign", key), ("other", other)):
        form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        (private.folder / f"{name}.pub").write_bytes(each.public_key().public_bytes(*form))
    image = {"docker-manifest-digest": pushed}
    critical = {"identity": {"docker-reference": ""}, "image": image, "type": "cosign container image signature"}
    body = json.dumps({"critical": critical, "optional": None}).encode()
    signature = base64.b64encode(key.sign(body, ec.ECDSA(hashes.SHA256()))).decode()
    layer = await private.pushed.blob(body, PAYLOAD) | {"annotations": {SIGNATURE: signature}}
    config = await private.pushed.blob(b"{}", "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": MANIFESTS[0], "config": config, "layers": [layer]}
    await private.pushed.put(manifest, MANIFESTS[0], f"{pushed.replace(':', '-')}.sig")
    assert digest(body) == layer["digest"]
    for name, fits in (("cosign", True), ("other", False)):
        keys = (SigningKeys(private.name, (str(private.folder / f"{name}.pub"),)),)
        async with private.images(keys) as images:
            if fits:
                await private.boots(images)
            else:
                with pytest.raises(ImageError, match="a signature is of another key"):
                    await images.resolve(f"{private.name}/team/os:1", "amd64")
