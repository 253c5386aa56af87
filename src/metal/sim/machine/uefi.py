"""What a UEFI firmware loads by HTTP boot, and a BMC for its virtual medium.

Firmware HTTP boot sends HEAD and one GET, and follows no redirect. Any answer but 200 with a length, a short body, or
content that is no EFI image ends in the EFI shell, where the machine stays. Seen with OVMF 2022.11.
"""

import re
import uuid
from collections.abc import Mapping
from urllib.parse import urlsplit

from metal.sim.machine import efi_image
from metal.sim.machine.efi_image import EFIImage
from metal.sim.machine.host import Host
from metal.sim.machine.network import Reply, Unreachable

_TOKEN = re.compile(r"[A-Za-z0-9_-]{20,}")


class Shell(Exception):
    """The firmware gave up and started the EFI shell; str() says why."""


async def http_boot(machine: Host, url: str) -> EFIImage:
    """The image at the URL. Raises Shell."""
    remember(machine, url)
    for method in ("HEAD", "GET"):
        status, headers, content = await _request(machine, method, url, machine.identity.host_ip)
        if status != 200:
            raise Shell(f"{method} was answered {status}")
        if not {"content-length", "transfer-encoding"} & set(headers):
            raise Shell(f"the answer to {method} has no length")
    if int(headers.get("content-length", len(content))) != len(content):
        raise Shell("the body was shorter than announced")
    if not (urlsplit(url).path.endswith(".efi") or headers.get("content-type") == "application/efi"):
        raise Shell("the URL does not end with .efi, and the type is not application/efi")
    return _startable(machine, efi_image.read(content))


async def medium_boot(machine: Host, url: str) -> EFIImage | None:
    """The image in the inserted ISO, which the BMC fetches from its own address; None when it cannot be read."""
    remember(machine, url)
    if machine.faults.never_reads_medium:
        return None
    for method in ("HEAD", "GET"):
        status, _, content = await _request(machine, method, url, machine.identity.bmc_ip)
        if status != 200:
            return None
    image = efi_image.read_iso(content)
    try:
        return _startable(machine, image) if image is not None else None
    except Shell:
        return None


def remember(machine: Host, url: str) -> None:
    """Keep the tokens in the path of a URL, for tests that search for leaked secrets."""
    machine.secrets.update(part for part in urlsplit(url).path.split("/") if _is_token(part))


def _startable(machine: Host, image: EFIImage | None) -> EFIImage:
    if image is None:
        raise Shell("this is no EFI image")
    if machine.state.secure_boot and not image.signed:
        raise Shell("Access Denied: the image is not signed")
    return image


async def _request(machine: Host, method: str, url: str, source: str) -> Reply:
    headers = {"user-agent": "UefiHttpBoot/1.0"}
    try:
        reply: tuple[int, Mapping[str, str], bytes] = await machine.ask(
            method, url, headers=headers, cut=machine.faults.no_boot_server, source=source
        )
    except Unreachable as exc:
        reply = (0, {}, str(exc).encode())
    path = "/".join("***" if _is_token(part) else part for part in urlsplit(url).path.split("/"))
    machine.note("fetch", path=path, method=method, status=reply[0], bytes=len(reply[2]), source=source)
    return reply


def _is_token(part: str) -> bool:
    try:
        uuid.UUID(part)
    except ValueError:
        return _TOKEN.fullmatch(part) is not None
    return False
