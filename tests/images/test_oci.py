"""OCI layouts, and pushing them to a registry that may refuse."""

import contextlib
import hashlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from images.push import PushError, push

from images import oci


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    (tmp_path / "vmlinuz").write_bytes(b"kernel")
    (tmp_path / "initrd").write_bytes(b"initramfs")
    parts = {"kernel": tmp_path / "vmlinuz", "initramfs": tmp_path / "initrd"}
    oci.write_layout(tmp_path / "layout", parts, "console=ttyS0")
    return tmp_path / "layout"


def blob(layout: Path, digest: str) -> bytes:
    """A blob whose content has the digest that names it."""
    content = oci.blob(layout, digest).read_bytes()
    assert digest == "sha256:" + hashlib.sha256(content).hexdigest()
    return content


def test_a_layout_has_an_index_a_manifest_a_config_and_the_parts(layout: Path) -> None:
    """Media types are IronCore's; sizes and digests are true."""
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(layout, described["digest"]))

    assert described["platform"] == {"architecture": "amd64", "os": "linux"}
    assert described["size"] == len(blob(layout, described["digest"]))
    assert manifest["config"]["mediaType"] == "application/vnd.ironcore.image.config.v1+json"
    assert json.loads(blob(layout, manifest["config"]["digest"])) == {"commandLine": "console=ttyS0"}
    assert {part["mediaType"]: blob(layout, part["digest"]) for part in manifest["layers"]} == {
        "application/vnd.ironcore.image.kernel": b"kernel",
        "application/vnd.ironcore.image.initramfs": b"initramfs",
    }
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_the_same_parts_give_the_same_digest(layout: Path, tmp_path: Path) -> None:
    """A layout does not say when or where it was made."""
    parts = {"kernel": tmp_path / "vmlinuz", "initramfs": tmp_path / "initrd"}

    digest = oci.write_layout(tmp_path / "again", parts, "console=ttyS0")

    assert digest == "sha256:" + hashlib.sha256((layout / "index.json").read_bytes()).hexdigest()


class FakeRegistry:
    """Keeps blobs whose digest is true and manifests by reference; `refuse` maps a method to a status."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.refuse: dict[str, int] = {}
        self.requests: list[str] = []
        self.url = ""

    def put(self, path: str, query: str, media_type: str, body: bytes) -> int:
        """The status of a PUT."""
        if path.startswith("/v2/os/demo/manifests/"):
            self.manifests[path.rpartition("/")[2]] = (media_type, body)
            return 201
        digest = urllib.parse.parse_qs(query).get("digest", [""])[0]
        if path != "/upload/1" or "state=7" not in query or digest != "sha256:" + hashlib.sha256(body).hexdigest():
            return 400
        self.blobs[digest] = body
        return 201


def handler(registry: FakeRegistry) -> type[BaseHTTPRequestHandler]:
    """Speaks for the registry."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(200 if self.path.rpartition("/")[2] in registry.blobs else 404)

        def do_POST(self) -> None:
            self._answer(202 if self.path == "/v2/os/demo/blobs/uploads/" else 404, "/upload/1?state=7")

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            path, _, query = self.path.partition("?")
            self._answer(registry.put(path, query, self.headers["Content-Type"], body))

        def _answer(self, status: int, location: str = "") -> None:
            registry.requests.append(f"{self.command} {self.path}")
            self.send_response(registry.refuse.get(self.command, status))
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *told: object) -> None:
            """Tests look at what was kept."""

    return Handler


@contextlib.contextmanager
def serving(registry: FakeRegistry) -> Iterator[None]:
    """Serves on a free port until the block ends."""
    server = HTTPServer(("127.0.0.1", 0), handler(registry))
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_push_brings_every_part_and_the_index_under_the_tag(layout: Path) -> None:
    """The index is what the tag names; the manifest is there by its digest."""
    registry = FakeRegistry()

    with serving(registry):
        push(layout, f"{registry.url}/os/demo:v1")

    index = (layout / "index.json").read_bytes()
    manifest = json.loads(index)["manifests"][0]["digest"]
    assert registry.manifests == {
        manifest: (oci.MANIFEST, oci.blob(layout, manifest).read_bytes()),
        "v1": (oci.INDEX, index),
    }
    assert {b"kernel", b"initramfs"} < set(registry.blobs.values())


def test_blobs_that_are_there_are_not_sent_again(layout: Path) -> None:
    """A second push asks and uploads nothing."""
    registry = FakeRegistry()

    with serving(registry):
        push(layout, f"{registry.url}/os/demo:v1")
        registry.requests.clear()
        push(layout, f"{registry.url}/os/demo:v2")

    assert not [request for request in registry.requests if request.startswith("POST")]
    assert "v2" in registry.manifests


@pytest.mark.parametrize(("method", "status"), [("HEAD", 500), ("POST", 401), ("PUT", 403)])
def test_a_refusal_says_which_request_and_how(layout: Path, method: str, status: int) -> None:
    """Nothing is tagged after a refusal."""
    registry = FakeRegistry()
    registry.refuse = {method: status}

    with serving(registry), pytest.raises(PushError, match=rf"{method} .* answered {status}"):
        push(layout, f"{registry.url}/os/demo:v1")

    assert "v1" not in registry.manifests


@pytest.mark.parametrize("reference", ["http://registry/os/demo", "registry:5000/os/demo:v1", "ftp://registry/demo:v1"])
def test_a_reference_that_cannot_work_is_refused(layout: Path, reference: str) -> None:
    """The sentence shows how to write one."""
    with pytest.raises(PushError, match="http://HOST:PORT"):
        push(layout, reference)
