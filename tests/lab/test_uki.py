"""UEFI firmware boots what `metal.boot.uki` composes: by its HTTP client, and from an ISO that is read in ranges."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from images import build, tree
from metal.boot.http_range import parse_range
from metal.boot.uki.authenticode import Signer
from metal.boot.uki.image import CachedFile, Ukis
from metal.boot.uki.iso import iso
from metal.boot.uki.layout import Layout
from tests.boot.uki.programs import site_key
from tests.lab import firmware
from tests.lab.netns import Namespace
from tests.lab.run import Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(170)]

LINE = "console=ttyS0 quiet rdinit=/init machine={} token=Zm9vYmFy"
INIT = b"""#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
echo "command line: $(/bin/busybox cat /proc/cmdline)."
exec /bin/busybox sleep 1000
"""


@dataclass(frozen=True)
class Bench:
    """A web server with layouts, and what UKIs are made from."""

    run: Run
    where: Namespace
    files: dict[str, Layout]
    requests: list[tuple[str, str, str]]
    """Method, path and range."""
    port: int
    kernel: CachedFile
    initramfs: CachedFile

    def uki(self, machine: str, signer: Signer | None = None) -> Layout:
        """The UKI of a machine."""
        made = Ukis(signer=signer).make("amd64", self.kernel, self.initramfs, LINE.format(machine))
        return asyncio.run(made)

    def await_text(self, console: Path, text: str) -> None:
        """Wait until the machine prints this."""
        self.run.wait_for(
            f"{text!r} on {console}", lambda: console.exists() and text.encode() in console.read_bytes(), 80
        )

    def certificate(self) -> Path:
        """The site's certificate as a file."""
        path = self.run.path("site.pem")
        path.write_bytes(site_key()[0])
        return path


@pytest.fixture(scope="module")
def bench(run: Run) -> Iterator[Bench]:
    """A server on the loopback of a namespace."""
    where = Namespace("uki")
    files: dict[str, Layout] = {}
    requests: list[tuple[str, str, str]] = []
    server = where.inside(lambda: ThreadingHTTPServer(("127.0.0.1", 0), _handler(files, requests)))
    Thread(target=server.serve_forever, daemon=True).start()
    with run.path("initrd").open("wb") as out:
        tree.write_cpio(_initramfs(), out)
    (kernel,) = (build.kernel_files(build.make_plan("cloud"), build.CACHE) / "boot").glob("vmlinuz-*")
    port = server.server_address[1]
    yield Bench(
        run, where, files, requests, port, CachedFile("kernel", kernel), CachedFile("initramfs", run.path("initrd"))
    )
    server.shutdown()
    server.server_close()
    run.stop()
    where.delete()


def _initramfs() -> tree.Tree:
    contents = {
        "bin/busybox": tree.file(Path("/bin/busybox").read_bytes(), 0o755),
        "init": tree.file(INIT, 0o755),
        "proc": tree.folder(),
        "dev": tree.folder(),
    }
    tree.add_parents(contents)
    return contents


def _handler(files: dict[str, Layout], requests: list[tuple[str, str, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            for chunk in self._answer().chunks():
                self.wfile.write(chunk)

        def _answer(self) -> Layout:
            wanted = self.headers.get("Range", "")
            requests.append((self.command, self.path, wanted))
            content = files[self.path]
            part = parse_range(wanted, content.size) if wanted else None
            offset, length = part or (0, content.size)
            self.send_response(206 if part else 200)
            self.send_header("Content-Length", str(length))
            self.send_header("Content-Type", "application/efi")
            self.send_header("Accept-Ranges", "bytes")
            if part:
                self.send_header("Content-Range", f"bytes {offset}-{offset + length - 1}/{content.size}")
            self.end_headers()
            return content.cut(offset, length)

        def log_message(self, *told: object) -> None:
            """The test has the requests."""

    return Handler


def test_firmware_with_secure_boot_loads_a_signed_uki_by_http(bench: Bench, say: Callable[[str], None]) -> None:
    """HEAD, then one GET of the path with the token; the kernel has this machine's command line and nothing else."""
    path = "/boot/node0/t0ken/uki.efi"
    bench.files[path] = bench.uki("node0", Signer.from_pem(*site_key()))
    uri = f"http://{firmware.GATEWAY}:{bench.port}{path}"
    variables = firmware.variables(bench.run, "http", boot_uri=uri, secure_boot=bench.certificate())
    bench.run.restart_clock()

    console = firmware.power_on(bench.run, bench.where, "http", variables, *firmware.nic())

    bench.await_text(console, f"command line: {LINE.format('node0')}.")
    say(f"uki: power-on to the kernel's command line, HTTP and Secure Boot: {bench.run.since_start():.0f} s")
    bench.run.stop("http")
    assert bench.requests == [("HEAD", path, ""), ("GET", path, "")]


def test_firmware_boots_an_iso_that_is_read_in_ranges(bench: Bench, say: Callable[[str], None]) -> None:
    """As a BMC reads virtual media; nothing but this machine's command line is in its kernel's."""
    bench.files["/node1.iso"] = iso(bench.uki("node1"), "amd64")
    variables = firmware.variables(bench.run, "iso")
    bench.run.restart_clock()

    medium = firmware.cd(f"http://127.0.0.1:{bench.port}/node1.iso")
    console = firmware.power_on(bench.run, bench.where, "iso", variables, *medium)

    bench.await_text(console, f"command line: {LINE.format('node1')}.")
    say(f"uki: power-on to the kernel's command line, ISO: {bench.run.since_start():.0f} s")
    bench.run.stop("iso")
    assert any(wanted for _, path, wanted in bench.requests if path == "/node1.iso")


def test_firmware_with_secure_boot_refuses_an_unsigned_uki(bench: Bench) -> None:
    """It says so on the console, and the kernel does not start."""
    bench.files["/node2.iso"] = iso(bench.uki("node2"), "amd64")
    variables = firmware.variables(bench.run, "unsigned", secure_boot=bench.certificate())

    medium = firmware.cd(f"http://127.0.0.1:{bench.port}/node2.iso")
    console = firmware.power_on(bench.run, bench.where, "unsigned", variables, *medium)

    bench.await_text(console, "Access Denied")
    bench.run.stop("unsigned")
    assert b"command line:" not in console.read_bytes()
