"""Tokens, certificates and the kubeconfig: who gets in, and who may read the keys."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from metal.apiserver.auth import kubeconfig, tls
from metal.apiserver.auth.tokens import TokenError, Tokens, write_private
from metal.kube.client.kubeconfig import from_file

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_token_is_made_at_first(tmp_path: Path) -> None:
    """The file holds one administrator, is private, and stays the same at the next start."""
    path = tmp_path / "tokens.csv"
    first = Tokens.load(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Tokens.load(path).admin == first.admin
    assert len(first.admin) >= 40
    user = first.of(first.admin)
    assert user is not None
    assert "system:masters" in user.groups
    assert first.admin not in repr(first)


@pytest.mark.parametrize("token", ["", "x", "{}x", "x{}", " {}", "Bearer {}"])
def test_only_the_exact_token_is_known(tmp_path: Path, token: str) -> None:
    """A token that differs in one character belongs to no user."""
    tokens = Tokens.load(tmp_path / "tokens.csv")
    assert tokens.of(token.format(tokens.admin)) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The sentence names the file and the command that repairs it."""
    path = tmp_path / "tokens.csv"
    Tokens.load(path)
    path.chmod(mode)
    with pytest.raises(TokenError, match=r"tokens.csv: mode 0\d+ lets other users read it; run: chmod 600"):
        Tokens.load(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "contains no token"),
        ("# none\n", "contains no token"),
        ("lonely\n", ":1: expected"),
        (",bob,1\n", ":1: expected"),
    ],
)
def test_a_bad_token_file_is_told_by_line(tmp_path: Path, content: str, told: str) -> None:
    """Line number and form are named; the token itself is not."""
    path = tmp_path / "tokens.csv"
    write_private(path, content.encode())
    with pytest.raises(TokenError, match=told) as refused:
        Tokens.load(path)
    assert "lonely" not in str(refused.value)


def names_of(path: Path) -> set[str]:
    """Hosts in a certificate."""
    names = x509.load_pem_x509_certificate(path.read_bytes()).extensions
    found = names.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_certificates_are_made_once(tmp_path: Path) -> None:
    """They name the loopback and the given hosts, are private, and are kept while they last."""
    identity = tls.ensure(tmp_path, ["192.0.2.7", "metal.example.org"], NOW)
    assert names_of(identity.certificate) == {"localhost", "127.0.0.1", "::1", "192.0.2.7", "metal.example.org"}
    modes = [stat.S_IMODE(path.stat().st_mode) for path in sorted(tmp_path.glob("*"))]
    assert modes == [0o600] * 4
    before = identity.certificate.read_bytes()
    tls.ensure(tmp_path, ["metal.example.org", "192.0.2.7"], NOW + timedelta(days=100))
    assert identity.certificate.read_bytes() == before


@pytest.mark.parametrize(("hosts", "days"), [(["192.0.2.8"], 0), ([], 310), ([], 400), ([], -10)])
def test_certificates_are_renewed(tmp_path: Path, hosts: list[str], days: int) -> None:
    """Another address, an end in sight, an end passed or a clock set back: a new one of the same authority."""
    identity = tls.ensure(tmp_path, [], NOW)
    certificate, authority = identity.certificate.read_bytes(), identity.authority.read_bytes()
    tls.ensure(tmp_path, hosts, NOW + timedelta(days=days))
    assert identity.certificate.read_bytes() != certificate
    assert (identity.authority.read_bytes() == authority) is (days >= 0)
    issued = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(identity.authority.read_bytes()))


def test_a_new_authority_issues_anew(tmp_path: Path) -> None:
    """When the authority is renewed or its key lost, the old server certificate goes with it."""
    identity = tls.ensure(tmp_path, [], NOW)
    (tmp_path / "ca.key").unlink()
    tls.ensure(tmp_path, [], NOW)
    issued = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
    issued.verify_directly_issued_by(x509.load_pem_x509_certificate(identity.authority.read_bytes()))


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Neither the authority's nor the server's key is used when it may have been copied."""
    for name in ("ca.key", "apiserver.key"):
        tls.ensure(tmp_path, [], NOW)
        (tmp_path / name).chmod(0o644)
        with pytest.raises(TokenError, match=f"{name}: mode 0644"):
            tls.ensure(tmp_path, [], NOW)
        (tmp_path / name).chmod(0o600)


def test_old_protocols_are_refused(tmp_path: Path) -> None:
    """TLS 1.2 at least."""
    assert tls.ensure(tmp_path, [], datetime.now(UTC)).context().minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_kubeconfig_is_private_and_complete(tmp_path: Path) -> None:
    """Clients find the address, the authority and the token in one file of mode 0600; writing replaces it."""
    identity = tls.ensure(tmp_path, [], datetime.now(UTC))
    path = tmp_path / "kubeconfig"
    for token in ("one", "two"):
        kubeconfig.write(path, server="https://127.0.0.1:1", authority=identity.authority.read_bytes(), token=token)
    connection = from_file(path)
    assert connection.url == "https://127.0.0.1:1"
    assert connection.token is not None
    assert connection.token() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
