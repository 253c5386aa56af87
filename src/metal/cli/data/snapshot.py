"""Client of /snapshot of an embedded API: downloads and uploads all objects while it is running."""

import os
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
import click

from metal.kube.client.kubeconfig import Connection

CHUNK = 1 << 20
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=5, sock_read=600)
"""A large snapshot has no total timeout, but each read has one."""


class SnapshotClient:
    """Client of /snapshot of one API server. Every method raises click.ClickException with a message."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, f"{url}/snapshot"

    async def download(self, file: Path) -> int:
        """Download a snapshot to a new private file, atomically; return its size in bytes."""
        # An unpredictable name, and never an existing file, whose owner could read every Secret.
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
        try:
            async with self._session.get(self._url) as answer:
                await _check(answer)
                _require(file, answer.content_length or 0)
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    size = 0
                    async for chunk in answer.content.iter_chunked(CHUNK):
                        size += out.write(chunk)
                    out.flush()
                    os.fsync(out.fileno())
            # A link, not a rename: an existing file is not overwritten.
            os.link(draft, file)
        except FileExistsError:
            raise click.ClickException(f"{file} exists; choose another file") from None
        except OSError as exc:
            _refuse(exc, file)
        finally:
            draft.unlink(missing_ok=True)
        return size

    async def upload(self, file: Path, *, dry_run: bool) -> dict[str, Any]:
        """Replace all objects by a snapshot; return the counts `written` and `removed`."""
        try:
            with file.open("rb") as copy:
                query = {"dryRun": "All"} if dry_run else None
                async with self._session.put(self._url, data=copy, params=query) as answer:
                    await _check(answer)
                    counts: dict[str, Any] = await answer.json()
                    return counts
        except OSError as exc:
            _refuse(exc, file)


@asynccontextmanager
async def snapshot_client(connection: Connection) -> AsyncIterator[SnapshotClient]:
    """Open a client for the API server of a connection."""
    headers = {"Authorization": f"Bearer {connection.token()}"} if connection.token else {}
    connector = aiohttp.TCPConnector(ssl=connection.tls or False)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=_TIMEOUT) as session:
        yield SnapshotClient(session, connection.url)


def _require(file: Path, size: int) -> None:
    free = shutil.disk_usage(file.absolute().parent).free
    if free < size:
        room = f"{size / 1e6:.1f} MB of free space, and its folder has {free / 1e6:.1f} MB"
        raise click.ClickException(f"{file}: the backup needs {room}; make room, or choose another file")


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status == 200:
        return
    if answer.status == 404:
        raise click.ClickException(
            "this API server has no snapshots: it is not an embedded API. Back up the etcd of the cluster instead"
        )
    try:
        message = str((await answer.json(content_type=None))["message"])
    except (ValueError, KeyError, TypeError):
        message = f"HTTP {answer.status}"
    raise click.ClickException(f"the API server rejected the request: {message}")


def _refuse(exc: OSError, file: Path) -> NoReturn:
    if isinstance(exc, aiohttp.ClientError) or exc.filename is None:
        raise click.ClickException(
            f"the API server did not answer: {exc}. Check that `metalctl up` is running"
        ) from None
    raise click.ClickException(f"{file}: {exc.strerror}; choose a file that this user can access") from None
