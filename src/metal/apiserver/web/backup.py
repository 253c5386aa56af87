"""/snapshot: GET returns a backup of all objects, PUT restores one.

The path is for administrators and not part of the Kubernetes API. Permission for the path (nonResourceURLs in RBAC) is
not enough, because a backup contains every Secret, and a restore writes every role. `PUT /snapshot?dryRun=All` counts.
"""

import asyncio
import os
import secrets
import shutil
from pathlib import Path

from aiohttp import web

from metal.apiserver.auth.access import Attributes
from metal.apiserver.auth.authorizer import Authorizer
from metal.apiserver.machinery import status
from metal.apiserver.storage import backup
from metal.apiserver.storage.journal import JournalError
from metal.apiserver.storage.store import Store
from metal.apiserver.web import render
from metal.apiserver.web.handler import USER, answer
from metal.apiserver.web.negotiate import Form
from metal.listener.shares import Exhausted, Shares

PATH = "/snapshot"
MEDIA_TYPE = "application/vnd.sqlite3"
CHUNK = 1 << 20
_NEEDED = {"GET": "list", "PUT": "*"}
"""The verb on all resources that each method requires."""
KEEP_FREE = 64 << 20
"""Bytes of the disk that an upload leaves free, because the API must be able to write."""

COPIES, COPIES_OF_ONE = 4, 2
"""Copies sent or received at the same time, in all and of one user. Each is a file in the data folder meanwhile."""
_SECONDS, _RATE = 60.0, 64 * 1024
"""Seconds, and those of its bytes at a minimum rate, until a copy must have been received by its client."""


ROW = 256
"""Bytes of an object in a copy, beside its body."""


class Snapshots:
    """Answers /snapshot. folder: a private folder for backups during upload and download."""

    def __init__(self, store: Store, authorizer: Authorizer, folder: Path) -> None:
        self._store, self._authorizer, self._folder = store, authorizer, folder
        self._streams = Shares(COPIES, {"user": COPIES_OF_ONE})
        for left in folder.glob(".snapshot-*"):  # left by a process that was killed; it contains every Secret
            left.unlink(missing_ok=True)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Raises StatusError 400, 403, 405, 429, 503 and 507."""
        if request.method not in _NEEDED:
            raise status.method_not_allowed()
        self._authorizer.check(Attributes(request[USER], _NEEDED[request.method], "*", "*"))
        try:
            with self._streams.take(user=request[USER].name):
                return await self._exchange(request)
        except Exhausted as exc:
            raise status.too_many_requests(f"copies: {exc}; try again when they are complete", 5) from None

    async def _exchange(self, request: web.Request) -> web.StreamResponse:
        path = self._folder / f".snapshot-{secrets.token_hex(8)}"
        try:
            return await (self._send(request, path) if request.method == "GET" else self._take(request, path))
        except JournalError as refused:
            raise status.bad_request(str(refused).replace(str(path), "the copy")) from refused
        finally:
            path.unlink(missing_ok=True)

    async def _send(self, request: web.Request, path: Path) -> web.StreamResponse:
        records, version = list(self._store.records()), self._store.version
        self._require(sum(len(record.body) + ROW for record in records), "a copy")
        try:
            await asyncio.to_thread(backup.save, path, version, records)
        except JournalError as full:
            raise status.unavailable(str(full).replace(str(path), "the copy")) from full
        response = web.StreamResponse(headers={"Content-Type": MEDIA_TYPE, "X-Resource-Version": str(version)})
        with path.open("rb") as copy:
            response.content_length = size = os.fstat(copy.fileno()).st_size
            async with asyncio.timeout(_SECONDS + size / _RATE):
                await response.prepare(request)
                while chunk := await asyncio.to_thread(copy.read, CHUNK):
                    await response.write(chunk)
                await response.write_eof()
        return response

    def _require(self, size: int, what: str) -> None:
        """Raises StatusError 503 when the data folder has no room for `what`."""
        free, needed = shutil.disk_usage(self._folder).free, size + KEEP_FREE
        if free < needed:
            raise status.unavailable(
                f"{what} needs {_mib(needed)} MiB of free space in the data folder, which has {_mib(free)} MiB; "
                "make room and try again"
            )

    async def _take(self, request: web.Request, path: Path) -> web.StreamResponse:
        # The upload, and its objects in the write-ahead log of the store.
        self._require(2 * (request.content_length or 0), "the upload and its objects")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
            async for chunk in request.content.iter_chunked(CHUNK):
                if shutil.disk_usage(self._folder).free < KEEP_FREE:
                    raise status.unavailable("the disk of the data folder is almost full; make room and try again")
                await asyncio.to_thread(copy.write, chunk)
        loaded = await asyncio.to_thread(backup.load, path)
        restoration = backup.Restoration(self._store, loaded)
        dry = request.query.get("dryRun") == "All"
        done = await (restoration.plan() if dry else restoration.run())
        body = {"written": done.written, "removed": done.removed, "resourceVersion": str(self._store.version)}
        return answer(render.encode(body, Form()), Form())


def _mib(size: int) -> int:
    return -(-size // (1 << 20))
