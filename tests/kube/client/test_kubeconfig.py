"""Kubeconfig: what kubectl would use is used, what cannot be used is refused with a sentence, secrets stay secret."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal.kube.client.errors import Unauthorized, Unavailable
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection, KubeconfigError, load
from tests.kube.client.pki import Authority
from tests.kube.client.wireserver import json, serving
from tests.kube.things import THING

OBJECT = {"metadata": {"name": "a", "namespace": "ns"}}


def write(folder: Path, *, cluster: dict[str, Any], user: dict[str, Any] | None = None, **more: Any) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
        ],
        **more,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def get_over(connection: Connection) -> str:
    async with HTTPClient(connection) as api:
        return (await api.get(THING, "a", "ns")).metadata.name


async def test_token_and_ca_from_data(tmp_path: Path) -> None:
    """The server is verified against the given CA and gets the token."""
    ca = Authority()
    async with serving(json(OBJECT), tls=ca.server_context(tmp_path)) as server:
        cluster = {"server": server.url + "/", "certificate-authority-data": b64(ca.pem)}
        assert await get_over(load(write(tmp_path, cluster=cluster, user={"token": "t0ken"}))) == "a"

    assert server.seen[0].headers["Authorization"] == "Bearer t0ken"


async def test_a_server_of_another_ca_is_refused(tmp_path: Path) -> None:
    """The token is not sent to an impostor."""
    async with serving(json(OBJECT), tls=Authority().server_context(tmp_path)) as server:
        cluster = {"server": server.url, "certificate-authority-data": b64(Authority().pem)}
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await get_over(load(write(tmp_path, cluster=cluster, user={"token": "t0ken"})))

    assert server.seen == []


async def test_unverified_tls_must_be_asked_for(tmp_path: Path) -> None:
    """insecure-skip-tls-verify is honoured."""
    async with serving(json(OBJECT), tls=Authority().server_context(tmp_path)) as server:
        cluster = {"server": server.url, "insecure-skip-tls-verify": True}
        assert await get_over(load(write(tmp_path, cluster=cluster))) == "a"


async def test_the_certificate_may_carry_another_name(tmp_path: Path) -> None:
    """tls-server-name is what the certificate is checked for."""
    ca = Authority()
    async with serving(json(OBJECT), tls=ca.server_context(tmp_path, dns="api.example")) as server:
        cluster = {"server": server.url, "certificate-authority-data": b64(ca.pem)}
        with pytest.raises(Unavailable):
            await get_over(load(write(tmp_path, cluster=cluster)))
        assert await get_over(load(write(tmp_path, cluster={**cluster, "tls-server-name": "api.example"}))) == "a"


@pytest.mark.parametrize("inline", [True, False])
async def test_client_certificate_from_data_and_from_files(tmp_path: Path, inline: bool) -> None:
    """Files are relative to the kubeconfig; both ways log in, and no key is left in a temporary file."""
    ca = Authority()
    pair = ca.issue("admin")
    if inline:
        user = {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)}
        cluster = {"certificate-authority-data": b64(ca.pem)}
    else:
        for name, data in (("ca.crt", ca.pem), ("tls.crt", pair.certificate), ("tls.key", pair.key)):
            (tmp_path / name).write_bytes(data)
        user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
        cluster = {"certificate-authority": "ca.crt"}
    async with serving(json(OBJECT), tls=ca.server_context(tmp_path, ask_client=True)) as server:
        assert await get_over(load(write(tmp_path, cluster={**cluster, "server": server.url}, user=user))) == "a"
        with pytest.raises(Unavailable):
            await get_over(load(write(tmp_path, cluster={**cluster, "server": server.url})))


def test_the_context_can_be_chosen(tmp_path: Path) -> None:
    """A named context replaces current-context and brings its namespace."""
    path = write(tmp_path, cluster={"server": "http://127.0.0.1:1"})

    assert load(path).namespace == "default"
    assert load(path, "other").namespace == "team"
    assert load(None, env={"KUBECONFIG": str(path)}).url == "http://127.0.0.1:1"


def test_a_token_file_is_read_again_when_replaced(tmp_path: Path) -> None:
    """Relative to the kubeconfig; while it is gone, the last token is used."""
    (tmp_path / "token").write_text("one\n")
    connection = load(write(tmp_path, cluster={"server": "http://127.0.0.1:1"}, user={"tokenFile": "token"}))
    assert connection.token is not None

    first = connection.token()
    replacement = tmp_path / "new"
    replacement.write_text("two\n")
    os.replace(replacement, tmp_path / "token")
    second = connection.token()
    (tmp_path / "token").unlink()

    assert (first, second, connection.token()) == ("one", "two", "two")


async def test_a_token_file_that_never_was_is_unauthorized(tmp_path: Path) -> None:
    """The request fails with a sentence that names the file."""
    connection = load(write(tmp_path, cluster={"server": "http://127.0.0.1:1"}, user={"tokenFile": "nope"}))

    with pytest.raises(Unauthorized, match="nope: cannot read the token"):
        await get_over(connection)


async def test_in_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    """Token, CA and namespace come from the mounted folder, host and port from the environment."""
    ca = Authority()
    account = tmp_path / "account"
    account.mkdir()
    for name, data in (("token", b"pod-token"), ("ca.crt", ca.pem), ("namespace", b"metal-system\n")):
        (account / name).write_bytes(data)
    async with serving(json(OBJECT), tls=ca.server_context(tmp_path)) as server:
        port = server.url.rpartition(":")[2]
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        connection = load(env=env, service_account=account)
        assert await get_over(connection) == "a"

    assert connection.namespace == "metal-system"
    assert server.seen[0].headers["Authorization"] == "Bearer pod-token"


def test_an_ipv6_service_address_is_bracketed(tmp_path: Path) -> None:
    """Clusters with IPv6 only work too."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(Authority().pem)

    assert load(env={"KUBERNETES_SERVICE_HOST": "fd00::1"}, service_account=tmp_path).url == "https://[fd00::1]:443"


HTTPS = {"server": "https://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cluster": {}}, "cluster.server is ''"),
        ({"cluster": {"server": "127.0.0.1:1"}}, "must begin with https"),
        ({"cluster": HTTPS, "user": {"exec": {"command": "x"}}}, "user.exec is not supported"),
        ({"cluster": HTTPS, "user": {"username": "x"}}, "user.username is not supported"),
        ({"cluster": {**HTTPS, "proxy-url": "http://p"}}, "cluster.proxy-url is not supported"),
        ({"cluster": HTTPS, "current-context": "nope"}, "no context is called 'nope': there is 'main', 'other'"),
        ({"cluster": HTTPS, "current-context": ""}, "set current-context, or name one of 'main', 'other'"),
        ({"cluster": HTTPS, "users": None}, "no user is called 'u': there is none"),
        ({"cluster": {**HTTPS, "certificate-authority-data": "?"}}, "certificate-authority-data is not base64"),
        ({"cluster": {**HTTPS, "certificate-authority-data": "eHh4"}}, "not a PEM certificate"),
        ({"cluster": {**HTTPS, "certificate-authority": "gone.crt"}}, "gone.crt: No such file"),
        ({"cluster": HTTPS, "user": {"client-certificate-data": "eHh4"}}, "must be given together"),
        ({"cluster": HTTPS, "user": {"client-certificate-data": "eHh4", "client-key-data": "eHh4"}}, "do not fit"),
        ({"cluster": HTTPS, "clusters": "x"}, r"\$\.clusters"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    """The message names the field, and the file or the choices."""
    with pytest.raises(KubeconfigError, match=problem):
        load(write(tmp_path, **changes))


def test_a_broken_file_names_the_line_and_keeps_its_secrets(tmp_path: Path) -> None:
    """The text around a YAML error may be a token."""
    path = tmp_path / "config"
    path.write_text("users:\n- user: {token: hunter2\n")

    with pytest.raises(KubeconfigError, match="not YAML at line") as caught:
        load(path)

    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The path that was tried is in the message."""
    with pytest.raises(KubeconfigError, match="nowhere: No such file"):
        load(tmp_path / "nowhere")


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """Neither the connection nor its parts."""
    connection = load(write(tmp_path, cluster={"server": "http://127.0.0.1:1"}, user={"token": "hunter2"}))

    assert "hunter2" not in repr(connection)
