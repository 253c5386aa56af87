"""Copies of everything that an embedded API holds, fetched from it and brought to it while it works."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
import click

from metal.kube.client.kubeconfig import Connection

CHUNK = 1 << 20
_PATIENCE = aiohttp.ClientTimeout(total=None, connect=5, sock_read=600)
"""A copy of a large API takes its time, but each step of it only so much."""


class Copies:
    """One API's /snapshot. Every method raises click.ClickException with a sentence."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, f"{url}/snapshot"

    async def fetch(self, file: Path) -> int:
        """Write a copy to a new private file, whole or not at all; returns its bytes."""
        # A name that nobody can know before, and never a file that is there: its owner would read every Secret.
        draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
        try:
            async with self._session.get(self._url) as answer:
                await _check(answer)
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    size = 0
                    async for chunk in answer.content.iter_chunked(CHUNK):
                        size += out.write(chunk)
                    out.flush()
                    os.fsync(out.fileno())
            # A link, not a rename: what is there already is not overwritten.
            os.link(draft, file)
        except FileExistsError:
            raise click.ClickException(f"{file} is there already; name another file") from None
        except OSError as exc:
            _refuse(exc, file)
        finally:
            draft.unlink(missing_ok=True)
        return size

    async def bring(self, file: Path, *, dry_run: bool) -> dict[str, Any]:
        """Put a copy in place of what the API holds; the answer counts `written` and `removed`."""
        try:
            with file.open("rb") as copy:
                query = {"dryRun": "All"} if dry_run else None
                async with self._session.put(self._url, data=copy, params=query) as answer:
                    await _check(answer)
                    told: dict[str, Any] = await answer.json()
                    return told
        except OSError as exc:
            _refuse(exc, file)


@asynccontextmanager
async def reach(connection: Connection) -> AsyncIterator[Copies]:
    """The copies of the API at a connection."""
    headers = {"Authorization": f"Bearer {connection.token()}"} if connection.token else {}
    connector = aiohttp.TCPConnector(ssl=connection.tls or False)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=_PATIENCE) as session:
        yield Copies(session, connection.url)


async def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status == 200:
        return
    if answer.status == 404:
        raise click.ClickException(
            "this API keeps no copies of itself: it is a cluster's own, so save the cluster's etcd instead"
        )
    try:
        told = str((await answer.json(content_type=None))["message"])
    except (ValueError, KeyError, TypeError):
        told = f"HTTP {answer.status}"
    raise click.ClickException(f"the API refused: {told}")


def _refuse(exc: OSError, file: Path) -> NoReturn:
    if isinstance(exc, aiohttp.ClientError) or exc.filename is None:
        raise click.ClickException(f"the API did not answer: {exc}. Is `metalctl up` running?") from None
    raise click.ClickException(f"{file}: {exc.strerror}; name a file that this user may use") from None
