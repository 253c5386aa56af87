"""The firmware and operating system of a simulated machine, from POST to a running system.

After POST the boot override decides between network, virtual medium and disk. A network boot gets a DHCP lease,
fetches and runs the boot server's iPXE scripts, downloads kernel and RAM disk, and fetches the Ignition; with a URL of
its BMC it is UEFI HTTP boot (`uefi`). The Ignition decides what runs: the probe, which reports; the sanitizer, which
erases (`eraser`); or a tenant's system, which leaves a marker on the disk and in the TPM. When the network boot fails
the disk is booted. Each step checks the injected faults.
"""

import asyncio
import hashlib
from collections.abc import Awaitable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from metal.sim import kernels
from metal.sim.machine import ipxe, uefi
from metal.sim.machine.efi_image import EFIImage
from metal.sim.machine.eraser import Eraser
from metal.sim.machine.host import Host
from metal.sim.machine.ignition import IgnitionError
from metal.sim.machine.ipxe import Loaded
from metal.sim.machine.network import AnswerLost, Reply, Unreachable
from metal.sim.machine.report import FOREIGN_MAC, report
from metal.sim.machine.state import OS, Disk, Override
from metal.sim.machine.uefi import Shell
from metal.sim.machine.user_data import operating_system

_POST, _KERNEL, _SERVICES = 0.6, 0.25, 0.15
"""Fractions of Options.boot: before the network boot, until Ignition runs, until services run."""
_DHCP = 30.0
"""Seconds that the firmware waits for a DHCP lease."""
_RETRY_MOST = 8.0
_FIRST_TRIES = 3


class Firmware:
    """Boots one machine; a power change cancels it."""

    def __init__(self, machine: Host) -> None:
        self._machine = machine

    async def boot(self) -> None:
        """From POST to a running system."""
        machine = self._machine
        if machine.faults.never_starts:
            return
        await machine.pause(machine.site.options.boot * _POST)
        from_medium = self._consume_override()
        if machine.state.netbooting:
            await self._boot_network()
        elif from_medium:
            await self._boot_or_disk(self._medium_boot())
        else:
            self._boot_disk()

    async def _boot_network(self) -> None:
        """Boots the disk when the network boot fails, but for UEFI HTTP boot, which ends in the EFI shell."""
        try:
            await self._boot_or_disk(self._http_boot() if self._machine.state.boot_url else self._network_boot())
        except Shell as exc:
            self._machine.state.netbooting = False
            self._machine.note("os", kind="shell", problem=str(exc))

    async def _boot_or_disk(self, boot: Awaitable[Loaded | None]) -> None:
        loaded = await boot
        if loaded is not None:
            await self._start(loaded)
        else:
            self._boot_disk()

    async def resume(self) -> None:
        """Continue after a restart of the simulator: the running system, or the boot in progress."""
        state = self._machine.state
        if state.os is not None:
            await self._run(state.os)
        elif state.netbooting:
            await self._boot_network()
        else:
            await self.boot()

    def _consume_override(self) -> bool:
        """Begins the network boot that is due; a one-time override is cleared by it. Whether a medium is booted.

        An inserted medium comes before the disk, also without an override: it stands first in the boot order.
        """
        machine, override = self._machine, self._machine.state.override
        ignored = machine.faults.boots_disk
        machine.state.netbooting = override.is_network and not ignored
        by_url = override.target == "UefiHttp" and not machine.faults.ignores_http_uri
        machine.state.boot_url = machine.http_url if machine.state.netbooting and by_url else ""
        if override.enabled == "Once" and not machine.faults.ignores_once:
            machine.state.override = Override(mode=override.mode, http_boot_uri=override.http_boot_uri)
            machine.note("override", enabled="Disabled", target="None", by="firmware")
        return machine.has_medium and not ignored

    async def _http_boot(self) -> Loaded | None:
        """UEFI HTTP boot: the network is configured by DHCP, the URL is the BMC's. Raises Shell."""
        if not await self._lease():
            raise Shell("no address from DHCP")
        url = self._machine.state.boot_url
        image = await uefi.http_boot(self._machine, url)
        return await self._started(image, f"{url.rpartition('/')[0]}/autoexec.ipxe")

    async def _medium_boot(self) -> Loaded | None:
        image = await uefi.medium_boot(self._machine, self._machine.state.medium)
        return None if image is None else await self._started(image, "")

    async def _started(self, image: EFIImage, autoexec: str) -> Loaded | None:
        """A unified kernel image is ready; iPXE runs its embedded script, else the one beside it, else DHCP's."""
        if image.is_uki:
            return Loaded(image.kernel, (image.initrd,), image.args)
        script = image.script
        if not script and autoexec:
            uefi.remember(self._machine, autoexec)
            script = (await self._download(autoexec) or b"").decode("ascii", "replace")
        return await self._run_script(script) if script else await self._network_boot()

    async def _network_boot(self) -> Loaded | None:
        if not await self._lease():
            return None
        first = await self._first_script()
        return None if first is None else await self._run_script(first)

    async def _lease(self) -> bool:
        machine, mac = self._machine, self._machine.identity.host_macs[0]
        if machine.faults.no_lease:
            await machine.pause(_DHCP)
            return False
        if not machine.faults.unreported_lease:
            await machine.site.lease(mac, machine.identity.host_ip)
        machine.note("lease", mac=mac, ip=machine.identity.host_ip)
        return True

    async def _run_script(self, script: str) -> Loaded | None:
        machine, mac = self._machine, self._machine.identity.host_macs[0]
        settings = {
            "uuid": machine.identity.uuid, "net0/mac": mac, "net0/mac:hexhyp": mac.replace(":", "-"),
            "net0/ip": machine.identity.host_ip, "asset": machine.state.smbios_tag,
        }  # fmt: skip
        try:
            return await ipxe.Interpreter(self._download, settings).run(script)
        except ipxe.ScriptError as exc:
            machine.note("script", problem=str(exc))
            return None

    async def _first_script(self) -> str | None:
        for attempt in range(_FIRST_TRIES):
            content = await self._download(f"{self._machine.site.boot_url}/ipxe")
            if content is not None:
                return content.decode("ascii", "replace")
            await asyncio.sleep(2.0**attempt)
        return None

    async def _download(self, url: str) -> bytes | None:
        self._remember_secret(url)
        status, headers, content = await self._get(url)
        length = headers.get("content-length")
        if self._machine.faults.dies_after_script and urlsplit(url).path.startswith("/ipxe/"):
            await asyncio.Event().wait()
        complete = status == 200 and (length is None or int(length) == len(content))
        return content if complete else None

    async def _get(self, url: str) -> Reply:
        machine, path = self._machine, urlsplit(url).path
        try:
            reply = await machine.ask(
                "GET", url, headers={"user-agent": "sim-firmware"}, cut=machine.faults.no_boot_server
            )
        except Unreachable as exc:
            reply = (0, {}, str(exc).encode())
        machine.note("fetch", path=path, status=reply[0], bytes=len(reply[2]))
        return reply

    def _remember_secret(self, url: str) -> None:
        self._machine.secrets.update(parse_qs(urlsplit(url).query).get("token", []))

    async def _start(self, loaded: Loaded) -> None:
        """Kernel, RAM disk, Ignition, services."""
        machine = self._machine
        if not kernels.starts_on(loaded.kernel, machine.hardware.architecture):
            machine.note("script", problem="Exec format error")
            self._boot_disk()
            return
        await machine.pause(machine.site.options.boot * _KERNEL)
        image = hashlib.sha256(loaded.kernel + b"".join(loaded.initrds)).hexdigest()
        url, root = loaded.argument("ignition.config.url"), loaded.argument("gl.url")
        try:
            system = operating_system(await self._insist(url) if url else None, image)
            if root:
                await self._insist(root)
        except IgnitionError as exc:
            machine.state.netbooting = False
            machine.note("os", kind="emergency", problem=str(exc))
            return
        if machine.faults.second_fetch:
            await self._get(f"{machine.site.boot_url}/ipxe/{machine.identity.uuid}")
        await machine.pause(machine.site.options.boot * _SERVICES)
        self._installed(system)
        await self._run(system)

    async def _insist(self, url: str) -> bytes:
        """As Ignition does: retry without limit while the server answers 5xx or not at all. Raises IgnitionError."""
        delay = 0.5
        self._remember_secret(url)
        while True:
            status, _, content = await self._get(url)
            if status == 200:
                return content
            if 0 < status < 500:
                raise IgnitionError(f"the server answered {status}")
            await asyncio.sleep(delay)
            delay = min(_RETRY_MOST, delay * 2)

    def _installed(self, system: OS) -> None:
        machine = self._machine
        machine.state.os, machine.state.netbooting = system, False
        machine.secrets.update({system.token} - {""})
        if system.kind == "tenant":
            machine.state.disk = Disk(image=system.image, marker=system.ignition or system.image)
            machine.state.bios.tpm = system.ignition or system.image
        machine.note(
            "os", kind=system.kind, image=system.image, ignition=system.ignition, source="network",
            drives=self._serials(), **({"hostname": system.hostname} if system.hostname else {}),
        )  # fmt: skip

    async def _run(self, system: OS) -> None:
        faults = self._machine.faults
        if system.kind not in ("probe", "sanitizer") or system.reported or faults.never_reports:
            return
        if faults.reports_late:
            await self._machine.pause(self._machine.site.options.late)
        if system.kind == "sanitizer":
            await Eraser(self._machine, system).run()
        else:
            await self._report(system)

    async def _report(self, system: OS) -> None:
        """As metalprobe does: retry with backoff, until accepted or refused."""
        machine, delay = self._machine, 1.0
        data = report(machine.identity, machine.hardware, machine.site.clock(), machine.drives)
        if machine.faults.foreign_interface:
            data["networkInterfaces"].append({"name": "eth9", "macAddress": FOREIGN_MAC})
        while True:
            status = await self._send(system, data)
            if 0 < status < 500 and status != 429:
                break
            await machine.pause(delay)
            delay = min(_RETRY_MOST, delay * 2)
        system.reported = True
        if machine.faults.reports_twice:
            for problems in ([], ["a different report"]):
                await self._send(system, {**data, "problems": problems})

    async def _send(self, system: OS, data: dict[str, Any]) -> int:
        """The status of the response, 0 for none."""
        machine = self._machine
        uuid = machine.neighbour if machine.faults.reports_other else system.uuid
        headers = {"authorization": f"Bearer {system.token}", "content-type": "application/json"}
        try:
            status, _, _ = await machine.ask(
                "POST", f"{system.registry_url}/register", headers=headers, cut=machine.faults.no_registry,
                body=msgspec.json.encode({"systemUUID": uuid, "data": data}),
            )  # fmt: skip
        except AnswerLost as lost:
            machine.note("report", status=lost.status, heard=False)
            return 0
        except Unreachable:
            status = 0
        machine.note("report", status=status)
        return status

    def _boot_disk(self) -> None:
        machine, disk = self._machine, self._machine.state.disk
        machine.state.netbooting = False
        if disk.marker:
            machine.state.os = OS(kind="disk", image=disk.image, ignition=disk.marker)
        kind = "disk" if disk.marker else "none"
        machine.note("os", kind=kind, image=disk.image, source="disk", drives=self._serials())

    def _serials(self) -> list[str]:
        """Serial numbers of the drives in the machine; the first one has the tenant's system."""
        return [disk.serial for disk in self._machine.hardware.disks]
