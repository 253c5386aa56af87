"""UEFI firmware boots what `metal.boot.uki` composes: by its HTTP client, and from an ISO that is read in ranges."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from images import oci, tree
from metal.boot.manifest import KERNEL
from metal.boot.uki.authenticode import Signer
from metal.boot.uki.image import CachedFile, Ukis
from metal.boot.uki.iso import iso
from metal.boot.uki.layout import Layout
from metal.kube.meta.clock import system_clock
from metal.machineapi.http.ranges import ranged
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Content, Response
from metal.machineapi.http.server import Request, Route, make_app, serve
from tests.boot.uki.programs import site_key
from tests.lab import firmware
from tests.lab.netns import Namespace
from tests.lab.run import IMAGES, Run

pytestmark = [pytest.mark.lab, pytest.mark.timeout(170)]

LINE = "console=ttyS0 quiet rdinit=/init machine={} token=Zm9vYmFy"
INIT = b"""#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
echo "command line: $(/bin/busybox cat /proc/cmdline)."
exec /bin/busybox sleep 1000
"""


@dataclass(frozen=True)
class Bench:
    """The HTTP front with layouts by name, and what UKIs are made from."""

    run: Run
    where: Namespace
    files: dict[str, Layout]
    requests: list[tuple[str, str, str]]
    """Method, name and range."""
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
    """The HTTP front of the boot server on the loopback of a namespace."""
    where = Namespace("uki")
    files: dict[str, Layout] = {}
    requests: list[tuple[str, str, str]] = []
    with run.path("initrd").open("wb") as out:
        tree.write_cpio(_initramfs(), out)
    cached = CachedFile("kernel", _kernel(IMAGES / "discovery")), CachedFile("initramfs", run.path("initrd"))
    with _serving(where, files, requests) as port:
        yield Bench(run, where, files, requests, port, *cached)
        run.stop()
    where.delete()


@contextmanager
def _serving(where: Namespace, files: dict[str, Layout], requests: list[tuple[str, str, str]]) -> Iterator[int]:
    async def content(request: Request) -> Response:
        name = request.path_parameters["name"]
        requests.append((request.method, name, request.headers.get("Range", "")))
        return ranged(Content(files[name]), name, request.headers, "application/efi")

    started: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve_until_stopped() -> None:
        app = make_app([Route("uki", "/boot/{token}/{name}", ("GET", "HEAD"), content)], Refusals(system_clock))
        running, stop = await serve(app, "127.0.0.1", 0), asyncio.Event()
        started.set_result((running.port, asyncio.get_running_loop(), stop))
        await stop.wait()
        await running.aclose()

    thread = Thread(target=lambda: where.inside(lambda: asyncio.run(serve_until_stopped())), daemon=True)
    thread.start()
    port, loop, stop = started.result(20)
    yield port
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def _kernel(layout: Path) -> Path:
    """The kernel of an image."""
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    layers = json.loads(oci.blob(layout, described["digest"]).read_text())["layers"]
    (digest,) = (layer["digest"] for layer in layers if layer["mediaType"] in KERNEL)
    return oci.blob(layout, digest)


def _initramfs() -> tree.Tree:
    contents = {
        "bin/busybox": tree.file(Path("/bin/busybox").read_bytes(), 0o755),
        "init": tree.file(INIT, 0o755),
        "proc": tree.folder(),
        "dev": tree.folder(),
    }
    tree.add_parents(contents)
    return contents


def test_firmware_with_secure_boot_loads_a_signed_uki_by_http(bench: Bench, say: Callable[[str], None]) -> None:
    """HEAD, then one GET of the path with the token; the kernel has this machine's command line and nothing else."""
    bench.files["node0.efi"] = bench.uki("node0", Signer.from_pem(*site_key()))
    uri = f"http://{firmware.GATEWAY}:{bench.port}/boot/t0ken/node0.efi"
    variables = firmware.variables(bench.run, "http", boot_uri=uri, secure_boot=bench.certificate())
    bench.run.restart_clock()

    console = firmware.power_on(bench.run, bench.where, "http", variables, *firmware.nic())

    bench.await_text(console, f"command line: {LINE.format('node0')}.")
    say(f"uki: power-on to the kernel's command line, HTTP and Secure Boot: {bench.run.since_start():.0f} s")
    bench.run.stop("http")
    assert bench.requests == [("HEAD", "node0.efi", ""), ("GET", "node0.efi", "")]


def test_firmware_boots_an_iso_that_is_read_in_ranges(bench: Bench, say: Callable[[str], None]) -> None:
    """As a BMC reads virtual media; nothing but this machine's command line is in its kernel's."""
    bench.files["node1.iso"] = iso(bench.uki("node1"), "amd64")
    variables = firmware.variables(bench.run, "iso")
    bench.run.restart_clock()

    medium = firmware.cd(f"http://127.0.0.1:{bench.port}/boot/t0ken/node1.iso")
    console = firmware.power_on(bench.run, bench.where, "iso", variables, *medium)

    bench.await_text(console, f"command line: {LINE.format('node1')}.")
    say(f"uki: power-on to the kernel's command line, ISO: {bench.run.since_start():.0f} s")
    bench.run.stop("iso")
    assert any(wanted for _, name, wanted in bench.requests if name == "node1.iso")


def test_firmware_with_secure_boot_refuses_an_unsigned_uki(bench: Bench) -> None:
    """It says so on the console, and the kernel does not start."""
    bench.files["node2.iso"] = iso(bench.uki("node2"), "amd64")
    variables = firmware.variables(bench.run, "unsigned", secure_boot=bench.certificate())

    medium = firmware.cd(f"http://127.0.0.1:{bench.port}/boot/t0ken/node2.iso")
    console = firmware.power_on(bench.run, bench.where, "unsigned", variables, *medium)

    bench.await_text(console, "Access Denied")
    bench.run.stop("unsigned")
    assert b"command line:" not in console.read_bytes()
