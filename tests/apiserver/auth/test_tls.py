"""The API's certificates survive being killed while they are renewed."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from metal.apiserver.auth import tls

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_is_good_is_kept(tmp_path: Path) -> None:
    """A restart changes no certificate: clients have pinned the authority."""
    first = tls.ensure(tmp_path, (), NOW)
    before = (first.authority.read_bytes(), first.certificate.read_bytes())
    again = tls.ensure(tmp_path, (), NOW + timedelta(days=1))
    assert (again.authority.read_bytes(), again.certificate.read_bytes()) == before


def test_a_key_without_its_certificate_is_replaced(tmp_path: Path) -> None:
    """After a crash between writing the new key and the new certificate, the next start creates both again."""
    other = tmp_path / "other"
    other.mkdir()
    mine = tls.ensure(tmp_path, (), NOW)
    shutil.copy(tls.ensure(other, (), NOW).key, mine.key)
    authority = mine.authority.read_bytes()
    mended = tls.ensure(tmp_path, (), NOW)
    mended.context()
    assert mended.authority.read_bytes() == authority


def test_an_authority_key_without_its_certificate_is_replaced(tmp_path: Path) -> None:
    """Then everything that depends on it is created again, too."""
    other = tmp_path / "other"
    other.mkdir()
    mine = tls.ensure(tmp_path, (), NOW)
    tls.ensure(other, (), NOW)
    shutil.copy(other / "ca.key", tmp_path / "ca.key")
    before = mine.authority.read_bytes()
    tls.ensure(tmp_path, (), NOW).context()
    assert mine.authority.read_bytes() != before
