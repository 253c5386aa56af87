"""Pushes an OCI image layout into a registry (OCI distribution spec 1.1, monolithic uploads).

Run as `python images/push.py LAYOUT http://HOST:PORT/REPOSITORY:TAG`.
"""

import argparse
import contextlib
import http.client
import json
import sys
import urllib.parse
from pathlib import Path
from typing import BinaryIO

if not __package__:  # started as a file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from images import oci

TIMEOUT = 120
"""Seconds without data from a registry after which a request fails."""


class PushError(Exception):
    """The registry refused; the text names the request and its answer."""


class Registry:
    """One repository of a registry without authentication."""

    def __init__(self, base: str, repository: str) -> None:
        url = urllib.parse.urlsplit(base)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise PushError(f"the registry {base!r} must be http://HOST:PORT or https://HOST:PORT")
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(url.hostname, url.port, timeout=TIMEOUT)
        self._repository = repository

    def push(self, layout: Path, tag: str) -> None:
        """Upload missing content: blobs, then manifests, then the index under the tag.

        Raises:
            PushError: the registry refused a request.
            OSError: it cannot be reached.
        """
        index = (layout / "index.json").read_bytes()
        for described in json.loads(index)["manifests"]:
            body = oci.blob(layout, described["digest"]).read_bytes()
            manifest = json.loads(body)
            for part in [manifest["config"], *manifest["layers"]]:
                self._blob(layout, part["digest"], part["size"])
            self._manifest(described["digest"], body, described["mediaType"])
        self._manifest(tag, index, oci.INDEX)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _blob(self, layout: Path, digest: str, size: int) -> None:
        if self._ask("HEAD", f"blobs/{digest}", accept=(200, 404))[0] == 200:
            return
        _, location = self._ask("POST", "blobs/uploads/", accept=(202,))
        target = urllib.parse.urlsplit(location)
        query = "&".join(filter(None, [target.query, "digest=" + urllib.parse.quote(digest, safe="")]))
        with oci.blob(layout, digest).open("rb") as content:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            self._request("PUT", f"{target.path}?{query}", content, headers, (201,))

    def _manifest(self, reference: str, body: bytes, media_type: str) -> None:
        self._ask("PUT", f"manifests/{reference}", body, {"Content-Type": media_type}, (201,))

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        accept: tuple[int, ...] = (),
    ) -> tuple[int, str]:
        return self._request(method, f"/v2/{self._repository}/{path}", body, headers or {}, accept)

    def _request(
        self, method: str, target: str, body: bytes | BinaryIO | None, headers: dict[str, str], accept: tuple[int, ...]
    ) -> tuple[int, str]:
        self._connection.request(method, target, body, headers)
        answer = self._connection.getresponse()
        told = answer.read()
        if answer.status not in accept:
            raise PushError(
                f"{method} {target.partition('?')[0]} answered {answer.status}: {told[:300].decode(errors='replace')}"
            )
        return answer.status, answer.headers.get("Location", "")


def push(layout: Path, reference: str) -> None:
    """Pushes a layout to `http://HOST:PORT/REPOSITORY:TAG`."""
    url = urllib.parse.urlsplit(reference)
    repository, _, tag = url.path.strip("/").rpartition(":")
    if not repository:
        raise PushError(f"{reference!r} names no tag: write http://HOST:PORT/REPOSITORY:TAG")
    with contextlib.closing(Registry(f"{url.scheme}://{url.netloc}", repository)) as registry:
        registry.push(layout, tag)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Push an OCI image layout into a registry.")
    parser.add_argument("layout", type=Path)
    parser.add_argument("reference", help="http://HOST:PORT/REPOSITORY:TAG")
    options = parser.parse_args()
    try:
        push(options.layout, options.reference)
    except (PushError, OSError) as refused:
        sys.exit(f"not pushed: {refused}")


if __name__ == "__main__":
    main()
