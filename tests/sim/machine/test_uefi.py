"""A simulated machine with UEFI: HTTP boot from the BMC's URL, virtual media, and the asset tag."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from metal.sim.machine.machine import Machine
from metal.sim.machine.network import Reply
from metal.sim.options import Carrier
from tests.sim.machine.efi import iso, pe, uki
from tests.sim.site import BOOT, OPTIONS, TENANT, Bench, BootServer

pytestmark = pytest.mark.looptime
TOKEN = "c2VjcmV0LXRva2VuLW9uY2U"
URL, ISO = f"{BOOT}/boot/x/{TOKEN}/boot.efi", f"{BOOT}/boot/x/{TOKEN}/s1.iso"
LONG = 100.0
CMDLINE = f"quiet ignition.config.url={BOOT}/ignition/x?token=script-token"


class Files(BootServer):
    """Also serves files by URL: status, headers and content. `asked` has method, URL and source of each request."""

    files: dict[str, Reply]
    asked: list[tuple[str, str, str]]

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, source_ip: str, timeout: float = 30.0
    ) -> Reply:
        self.asked.append((method, url, source_ip))
        if url not in self.files:
            if url.startswith(f"{BOOT}/boot/"):
                return 404, {}, b""
            return await super().request(method, url, headers=headers, body=body, source_ip=source_ip)
        status, sent, content = self.files[url]
        return status, {"content-length": str(len(content)), **sent}, b"" if method == "HEAD" else content


def bench(*carriers: Carrier, **files: Any) -> Bench:
    """A machine whose BMC offers these, with a file at URL and ISO."""
    made = Bench(replace(OPTIONS, carriers=(frozenset(carriers),)))
    server = Files(ignition=TENANT)
    server.files = {URL: (200, {}, uki(CMDLINE)), ISO: (200, {}, iso(uki(CMDLINE)))}
    server.asked = []
    made.server = server
    made.machine = Machine(made.machine.identity, replace(made.machine.site, network=server), made.machine.rng)
    return made


def files(made: Bench) -> Files:
    assert isinstance(made.server, Files)
    return made.server


async def start(made: Bench, target: str = "", url: str = "") -> None:
    override = made.machine.state.override
    if target:
        override.enabled, override.target = "Once", target
    if url:
        override.http_boot_uri = url
    made.machine.reset("On")
    await asyncio.sleep(LONG)


async def test_the_firmware_boots_the_image_at_the_url_of_the_bmc() -> None:
    """HEAD and one GET from the host's address, after a lease; the kernel's arguments come from the image."""
    made = bench(Carrier.HTTP_BOOT_URI)
    await start(made, "UefiHttp", URL)
    ip = made.machine.identity.host_ip
    assert files(made).asked[:2] == [("HEAD", URL, ip), ("GET", URL, ip)]
    assert made.systems == ["tenant"]
    assert made.machine.state.os is not None
    assert made.machine.state.os.hostname == "web-1"
    assert made.leases
    assert TOKEN in made.machine.secrets
    assert TOKEN not in repr(made.happened())
    assert made.machine.state.override.enabled == "Disabled"


@pytest.mark.parametrize(
    "answer",
    [
        (302, {"location": URL}, b""),
        (307, {"location": URL}, b""),
        (503, {"retry-after": "1"}, b""),
        (405, {}, b""),
        (200, {"content-length": "99999999"}, uki()),
        (200, {}, b"<html>"),
    ],
)
async def test_any_other_answer_ends_in_the_efi_shell(answer: Reply) -> None:
    """Without a retry, and without the disk: the machine stays on until its power changes."""
    made = bench(Carrier.HTTP_BOOT_URI)
    files(made).files[URL] = answer
    await start(made, "UefiHttp", URL)
    assert made.systems == ["shell"]
    assert made.machine.state.power == "On"
    assert made.machine.state.os is None
    asked = len(files(made).asked)
    await asyncio.sleep(LONG)
    assert len(files(made).asked) == asked
    made.machine.reset("PowerCycle")
    await asyncio.sleep(LONG)
    assert made.systems == ["shell", "none"]


async def test_without_a_url_the_firmware_asks_dhcp() -> None:
    """UefiHttp alone boots as PXE does; so does a firmware that ignores the URL."""
    made = bench(Carrier.HTTP_BOOT_URI)
    await start(made, "UefiHttp")
    assert made.systems == ["tenant"]
    ignoring = bench(Carrier.HTTP_BOOT_URI)
    ignoring.machine.faults.ignores_http_uri = True
    await start(ignoring, "UefiHttp", URL)
    assert ignoring.systems == ["tenant"]
    assert URL not in [url for _, url, _ in files(ignoring).asked]


@pytest.mark.parametrize("beside", [True, False])
async def test_ipxe_at_the_url_runs_its_own_script(beside: bool) -> None:
    """The embedded one, or autoexec.ipxe beside the image; otherwise it asks DHCP."""
    made = bench(Carrier.HTTP_BOOT_URI)
    script = f"#!ipxe\nkernel {BOOT}/image?part=kernel quiet\nboot\n"
    files(made).files[URL] = (200, {}, pe({".data": b"" if beside else script.encode() + b"\0"}))
    files(made).files[f"{BOOT}/boot/x/{TOKEN}/autoexec.ipxe"] = (200, {}, script.encode())
    await start(made, "UefiHttp", URL)
    assert made.systems == ["tenant"]
    assert f"{BOOT}/ipxe" not in [url for _, url, _ in files(made).asked]


async def test_a_url_in_a_bios_attribute_counts_from_the_start_that_takes_it_over() -> None:
    """It is pending until then, and Dell's needs the device enabled."""
    made = bench(Carrier.HTTP_DEV1_URI)
    made.machine.state.bios.pending = {"HttpDev1Uri": URL}
    await start(made, "UefiHttp")
    assert made.machine.http_url == ""
    made.machine.state.bios.pending = {"HttpDev1EnDis": "Enabled"}
    made.machine.reset("ForceOff")
    await asyncio.sleep(LONG)
    await start(made, "UefiHttp")
    assert ("GET", URL, made.machine.identity.host_ip) in files(made).asked


@pytest.mark.parametrize("signed", [True, False])
async def test_secure_boot_starts_what_is_signed(signed: bool) -> None:
    """Anything else is downloaded whole, and then refused."""
    made = bench(Carrier.HTTP_BOOT_URI)
    made.machine.state.secure_boot = True
    files(made).files[URL] = (200, {}, uki(CMDLINE, signed=signed))
    await start(made, "UefiHttp", URL)
    assert made.systems == (["tenant"] if signed else ["shell"])


async def test_an_interrupted_http_boot_continues_with_its_url() -> None:
    """A simulator that restarts has consumed the override already."""
    made = bench(Carrier.HTTP_BOOT_URI)
    files(made).files[URL] = (200, {}, uki("ignition.config.url=http://gone.test/i"))
    made.machine.state.power, made.machine.state.netbooting, made.machine.state.boot_url = "On", True, URL
    made.machine.resume()
    await asyncio.sleep(5)
    assert [url for _, url, _ in files(made).asked] == [URL, URL]


async def test_a_medium_is_read_by_the_bmc_and_booted() -> None:
    """From the address of the BMC; the host asks for the Ignition only."""
    made = bench(Carrier.VIRTUAL_MEDIA)
    made.machine.insert_medium(ISO)
    await asyncio.sleep(OPTIONS.medium)
    await start(made, "Cd")
    bmc = made.machine.identity.bmc_ip
    assert files(made).asked[:2] == [("HEAD", ISO, bmc), ("GET", ISO, bmc)]
    assert made.systems == ["tenant"]
    assert {source for _, url, source in files(made).asked if url != ISO} == {made.machine.identity.host_ip}


@pytest.mark.parametrize("why", ["fault", "gone", "no image"])
async def test_a_medium_that_cannot_be_read_leads_to_the_disk(why: str) -> None:
    """The BMC never fetches it, the URL is spent, or nothing in it can be started."""
    made = bench(Carrier.VIRTUAL_MEDIA)
    made.machine.faults.never_reads_medium = why == "fault"
    if why == "gone":
        del files(made).files[ISO]
    if why == "no image":
        files(made).files[ISO] = (200, {}, b"nothing")
    made.machine.insert_medium(ISO)
    await asyncio.sleep(OPTIONS.medium)
    await start(made, "Cd")
    assert made.systems == ["none"]
    assert (("GET", ISO, made.machine.identity.bmc_ip) in files(made).asked) is (why == "no image")


async def test_a_stale_medium_boots_before_the_disk() -> None:
    """Without any override, as with many boot orders; a network boot comes before it."""
    made = bench(Carrier.VIRTUAL_MEDIA)
    made.machine.faults.keeps_medium = True
    made.machine.insert_medium(ISO)
    made.machine.eject_medium()
    await asyncio.sleep(OPTIONS.medium)
    assert made.machine.has_medium
    await start(made)
    assert made.systems == ["tenant"]
    made.machine.faults.keeps_medium = False
    made.machine.eject_medium()
    made.machine.reset("PowerCycle")
    await asyncio.sleep(LONG)
    assert made.systems == ["tenant", "disk"]


@pytest.mark.parametrize("kept", [True, False])
async def test_the_asset_tag_is_in_smbios_after_the_next_post(kept: bool) -> None:
    """iPXE expands it, unless the firmware does not copy it."""
    made = bench(Carrier.ASSET_TAG)
    made.machine.faults.keeps_asset_tag = kept
    made.machine.state.asset_tag = "nonce-of-this-boot"
    files(made).files[f"{BOOT}/ipxe"] = (200, {}, f"#!ipxe\nchain {BOOT}/boot/y?asset=${{asset}}\n".encode())
    await start(made, "Pxe")
    asked = [url for _, url, _ in files(made).asked if "/boot/y" in url]
    assert asked == [f"{BOOT}/boot/y?asset={'' if kept else 'nonce-of-this-boot'}"]
