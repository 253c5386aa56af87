"""Tokens of ServiceAccounts: when they end, what forges them, and who may read the key."""

import base64
import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from metal.apiserver.auth.jwt import Signer
from metal.apiserver.auth.service_accounts import AUDIENCE, TokenRefusedError
from metal.apiserver.auth.tokens import TokenError
from metal.apiserver.backend import Backend
from metal.apiserver.machinery.options import DeleteOptions
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.users import SYSTEM
from metal.apiserver.server import EmbeddedAPI

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


async def issued(backend: Backend, **spec: Any) -> str:
    """A token of the default account of default."""
    accounts = backend.resource("", "v1", "serviceaccounts")
    ctx = RequestContext(SYSTEM, accounts, "default", "default", "token")
    token: str = (await backend.create(ctx, {"spec": spec})).decode()["status"]["token"]
    return token


async def test_a_token_ends_when_it_said() -> None:
    """Good until its last second, refused from then on."""
    clock = Hands()
    api = EmbeddedAPI(None, clock)
    await api.start()
    try:
        token = await issued(api.backend, expirationSeconds=600)
        clock.now = NOW + timedelta(seconds=599)
        found = api.backend.accounts.authenticate(token)
        assert found is not None
        assert found.user.name == "system:serviceaccount:default:default"
        clock.now = NOW + timedelta(seconds=600)
        with pytest.raises(TokenRefusedError, match="service account token has expired"):
            api.backend.accounts.authenticate(token)
    finally:
        await api.stop()


async def test_tokens_outlive_a_restart(tmp_path: Path) -> None:
    """The key is kept in the data folder, private, and signs on; a foreign key's tokens are nobody's."""
    api = EmbeddedAPI(tmp_path / "data", lambda: NOW)
    await api.start()
    token = await issued(api.backend)
    await api.stop()
    assert stat.S_IMODE((tmp_path / "data" / "sa.key").stat().st_mode) == 0o600
    api = EmbeddedAPI(tmp_path / "data", lambda: NOW)
    await api.start()
    try:
        assert api.backend.accounts.authenticate(token) is not None
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        assert api.backend.accounts.authenticate(Signer(None).sign(claims)) is None
        assert token not in repr(api.backend.accounts)
    finally:
        await api.stop()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """It may have been copied."""
    Signer(tmp_path / "sa.key").sign({})
    (tmp_path / "sa.key").chmod(mode)
    with pytest.raises(TokenError, match=r"sa\.key: mode 0\d+ lets other users read it"):
        Signer(tmp_path / "sa.key").sign({})


def test_a_file_that_holds_no_key_is_told(tmp_path: Path) -> None:
    """Neither garbage nor a key of another kind signs."""
    path = tmp_path / "sa.key"
    path.touch(mode=0o600)
    with pytest.raises(TokenError, match="contains no private key"):
        Signer(path).sign({})
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(pem)
    with pytest.raises(TokenError, match="expected a key on the curve P-256"):
        Signer(path).sign({})


def test_a_signature_counts_only_for_what_was_signed() -> None:
    """Another algorithm, other claims, a shorter signature, no JSON, too much: nobody's."""
    signer = Signer(None)
    head, body, signature = signer.sign({"a": 1}).split(".")
    other = base64.urlsafe_b64encode(b'{"a":2}').decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    assert signer.verify(f"{head}.{body}.{signature}") == {"a": 1}
    for forged in (
        f"{head}.{other}.{signature}",
        f"{none}.{body}.",
        f"{none}.{body}.{signature}",
        f"{head}.{body}.{signature[:-4]}",
        f"{head}.{body}",
        "a.b.c",
        "ü.ü.ü",
        "",
        f"{head}.{body}.{'A' * 100_000}",
    ):
        assert signer.verify(forged) is None


async def test_a_token_of_another_issuer_is_nobodys() -> None:
    """Even when it is signed by our key."""
    api = EmbeddedAPI(None, lambda: NOW)
    await api.start()
    try:
        signer = api.backend.accounts._signer
        claims = {"iss": "https://example.org", "aud": [AUDIENCE], "exp": 1 << 40}
        assert api.backend.accounts.authenticate(signer.sign(claims)) is None
    finally:
        await api.stop()


async def test_a_deleted_account_that_waits_for_its_finalizers_is_out() -> None:
    """Its tokens end with the delete, not with the last finalizer."""
    api = EmbeddedAPI(None, lambda: NOW)
    await api.start()
    try:
        accounts = api.backend.resource("", "v1", "serviceaccounts")
        ctx = RequestContext(SYSTEM, accounts, "default")
        await api.backend.create(ctx, {"metadata": {"name": "sa", "finalizers": ["example.org/x"]}})
        named = replace(ctx, name="sa", subresource="token")
        token = (await api.backend.create(named, {})).decode()["status"]["token"]
        assert api.backend.accounts.authenticate(token) is not None
        await api.backend.delete(replace(ctx, name="sa"), DeleteOptions())
        with pytest.raises(TokenRefusedError, match="has been deleted"):
            api.backend.accounts.authenticate(token)
    finally:
        await api.stop()
