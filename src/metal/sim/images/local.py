"""Images for the boot server from an ImageStore, without downloads and sockets, for tests in virtual time."""

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from metal.boot import manifest as documents
from metal.boot.errors import ImageError
from metal.boot.images import Image, Progress, find_manifest
from metal.boot.manifest import Document
from metal.boot.oci import BadReference, parse
from metal.boot.plan import Blob
from metal.sim.images.registry import ImageStore


class LocalImages:
    """Implements metal.boot.images.Images. Every registry name refers to the same store."""

    def __init__(self, store: ImageStore | None = None) -> None:
        self.store = store or ImageStore()
        self.failure: ImageError | None = None
        """The error that every resolve of a new reference raises."""
        self.delay = 0.0
        """Seconds that a resolve takes."""
        self._folder: Path | None = None

    def __repr__(self) -> str:
        return f"<LocalImages {self.store!r}>"

    async def start(self) -> None:
        """Write the blobs to files."""
        self._folder = Path(tempfile.mkdtemp(prefix="sim-images-"))
        for digest, content in self.store.blobs.items():
            self._path(digest).write_bytes(content)

    async def aclose(self) -> None:
        """Remove them."""
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    async def resolve(self, reference: str, architecture: str, *, pinned: bool = False) -> Image:
        """Resolve a reference for an architecture. Raises ImageError."""
        await asyncio.sleep(self.delay)
        if self.failure is not None:
            raise self.failure
        try:
            wanted = parse(reference)
        except BadReference as exc:
            raise ImageError("BadReference", str(exc)) from None
        document, chain = await find_manifest(partial(self._document, wanted.repository), wanted.wanted, architecture)
        parts, config = documents.parts(document), documents.Config()
        if parts.config is not None:
            config = documents.read_config(self.store.blobs[parts.config.digest], parts.config.media_type)
        return Image(wanted.pinned(chain[-1]), parts, config.command_line, config.architecture, chain)

    def prefetch(self, owner: str, image: Image, wake: Callable[[], None]) -> Progress:
        """Every blob is available."""
        total = sum(blob.size for blob in image.parts.blobs)
        return Progress(total, total, complete=True)

    def keep(self, owner: str, digests: Collection[str]) -> bool:
        """Every blob is available."""
        return all(digest in self.store.blobs for digest in digests)

    def release(self, owner: str) -> None:
        """Nothing is held."""

    async def open(self, blob: Blob) -> Path:
        """The file of a blob. Raises ImageError."""
        if blob.digest not in self.store.blobs or self._folder is None:
            raise ImageError("ImageNotFound", f"{blob.image.name} has no layer {blob.digest}")
        return self._path(blob.digest)

    def use(self, digest: str) -> AbstractContextManager[None]:
        """No effect: files are never removed."""
        return _kept()

    async def _document(self, repository: str, name: str) -> tuple[str, str, Document]:
        found = self.store.manifests.get((repository, name))
        if found is None:
            raise ImageError("ImageNotFound", f"the store has no {repository}:{name}")
        return f"sha256:{hashlib.sha256(found[1]).hexdigest()}", found[0], documents.parse(found[1], found[0])

    def _path(self, digest: str) -> Path:
        if self._folder is None:
            raise ImageError("NotStarted", "LocalImages was not started")
        return self._folder / digest.replace(":", "-")


@contextmanager
def _kept() -> Iterator[None]:
    yield
