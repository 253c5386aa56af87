"""Static bearer tokens in a file that only its owner may read."""

import csv
import hashlib
import io
import os
import secrets
import stat
from pathlib import Path

from metal.apiserver.machinery.users import User

ADMIN = User("admin", uid="admin", groups=("system:masters", "system:authenticated"))


class TokenError(Exception):
    """The token file cannot be used; the message names the cause and the way out."""


def write_private(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 atomically."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def check_private(path: Path) -> None:
    """Raises TokenError when others than the owner may read a file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise TokenError(f"{path}: mode {mode:04o} lets other users read it; run: chmod 600 {path}")


class Tokens:
    """Known tokens, as digests. Lines of the file: token,user,uid,"group1,group2" (kube-apiserver's format)."""

    def __init__(self, users: dict[bytes, User], admin: str) -> None:
        self._users = users
        self.admin = admin

    def __repr__(self) -> str:
        return f"<Tokens {len(self._users)}>"

    @classmethod
    def load(cls, path: Path) -> "Tokens":
        """Read the file, or create it with one administrator. Raises TokenError."""
        if not path.exists():
            write_private(path, f'{secrets.token_urlsafe(32)},{ADMIN.name},{ADMIN.uid},"system:masters"\n'.encode())
        check_private(path)
        users: dict[bytes, User] = {}
        admin = ""
        for number, row in enumerate(csv.reader(io.StringIO(path.read_text())), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3 or not row[0] or not row[1]:
                raise TokenError(f'{path}:{number}: expected token,user,uid,"groups"')
            groups = tuple(name for name in (row[3] if len(row) > 3 else "").split(",") if name)
            users[_digest(row[0])] = User(row[1], row[2], (*groups, "system:authenticated"))
            admin = admin or row[0]
        if not users:
            raise TokenError(f"{path}: contains no token; remove the file to get a new one")
        return cls(users, admin)

    def of(self, token: str) -> User | None:
        """The user of a bare token, or None."""
        # Looked up by digest, so that the duration does not reveal how much of a token is right.
        return self._users.get(_digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
