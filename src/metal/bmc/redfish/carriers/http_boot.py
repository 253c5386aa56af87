"""UEFI HTTP boot over Redfish: ComputerSystem.Boot.HttpBootUri, or the BIOS attributes of the vendor table."""

from dataclasses import dataclass

from metal.bmc.boot import BootTarget
from metal.bmc.carriers.http_boot import HttpBootState
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCNotFound, BMCNotSupported, BMCServerError
from metal.bmc.redfish.bios import BiosSettings, BiosView
from metal.bmc.redfish.boot import RedfishBoot
from metal.bmc.vendors import HttpBootAttributes, http_boot_for
from metal.redfish.resources import Bios, System

_REFUSALS = (BMCBadRequest, BMCNotSupported, BMCServerError)


class RedfishHttpBoot(RedfishBoot, BiosSettings):
    """BIOS attributes where the BIOS has known ones, because such BMCs may show HttpBootUri and ignore it."""

    async def http_boot(self, uri: str) -> HttpBootState:
        """Two to four requests."""
        _, system = await self._read_system(uri)
        held = await self._attribute(system)
        override = (await self._view(uri)).override
        if held is None:
            url = _url(override.http_boot_uri)
            self.client.redact.add(url)
            return HttpBootState(url, override)
        now, coming = held.now, await self._coming(held)
        self.client.redact.add(coming)
        return HttpBootState(coming, override, needs_reset=now != coming)

    async def set_http_boot(self, uri: str, url: str) -> HttpBootState:
        """A URL that is set, or pending, already is not written again: some BMCs refuse a second change."""
        self.client.redact.add(url)
        _, system = await self._read_system(uri)
        held = await self._attribute(system)
        if held is None:
            await self._set_property(uri, url)
        else:
            await self._write(held, url)
            await self._try_override(uri)
        return await self.http_boot(uri)

    async def clear_http_boot(self, uri: str) -> HttpBootState:
        """The override first, so that a URL that stays is not used."""
        await self.clear_boot_override(uri)
        _, system = await self._read_system(uri)
        held = await self._attribute(system)
        if held is None:
            await self._clear_property(uri)
        else:
            await self._write(held, "")
        return await self.http_boot(uri)

    async def _set_property(self, uri: str, url: str) -> None:
        view = await self._view(uri)
        if "HttpBootUri" not in (view.resource.data.get("Boot") or {}):
            raise BMCNotSupported(f"{self.client.name} offers no HttpBootUri for this system.")
        await self.set_network_boot(uri, BootTarget.UEFI_HTTP, http_boot_uri=url)

    async def _clear_property(self, uri: str) -> None:
        """BMCs want null or an empty text."""
        for nothing in (None, ""):
            view = await self._view(uri)
            if not _url(view.override.http_boot_uri):
                return
            try:
                await self._patch_boot(view, {"HttpBootUri": nothing})
            except _REFUSALS as error:
                if nothing is not None or isinstance(error, BMCBusy):
                    raise

    async def _try_override(self, uri: str) -> None:
        """Some of these BMCs refuse any override; then the firmware's boot order decides."""
        try:
            await self.set_network_boot(uri, BootTarget.UEFI_HTTP)
        except _REFUSALS as error:
            if isinstance(error, BMCBusy):
                raise

    async def _attribute(self, system: System) -> "_Attribute | None":
        try:
            view = await self._bios_of(system)
        except (BMCNotFound, BMCNotSupported):
            return None
        boot = http_boot_for(view.machine, view.bios.attributes)
        return _Attribute(view, boot) if boot is not None else None

    async def _coming(self, held: "_Attribute") -> str:
        """The value after the next start; settings objects show all attributes, or only those that change."""
        pending = (await self._settings(held.view)).decode(Bios).attributes
        return _url(pending.get(held.boot.url, held.now))

    async def _write(self, held: "_Attribute", url: str) -> None:
        if await self._coming(held) != url:
            await self._stage(held.view, held.boot.setting(url, held.view.bios.attributes))


@dataclass(frozen=True)
class _Attribute:
    view: BiosView
    boot: HttpBootAttributes

    @property
    def now(self) -> str:
        """The value that the firmware uses."""
        return _url(self.view.bios.attributes.get(self.boot.url))


def _url(value: object) -> str:
    """The URL, or nothing: some BMCs report a word such as None in its place."""
    return value if isinstance(value, str) and "://" in value else ""
