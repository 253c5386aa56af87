"""Boot overrides and boot order over Redfish (ComputerSystem.Boot).

Every write is read back, because BMCs ignore and lose such writes. An override names the target in the BMC's own
spelling, `Once` where the BMC lists it, and the UEFI mode only where the table of vendor facts or the BMC requires it:
a BMC that reports no mode rejects one. Clearing tries several bodies until the read shows neither a network boot nor
a boot from a medium.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from metal.bmc.boot import BootEnabled, BootOverride, BootTarget
from metal.bmc.errors import BMCBadRequest, BMCBusy, BMCError, BMCNotSupported, BMCServerError
from metal.bmc.redfish import convert
from metal.bmc.redfish.capability import Capability, system_quirks
from metal.redfish import Resource
from metal.redfish.client import JSON
from metal.redfish.paths import local_path
from metal.redfish.resources import Boot, System

_REFUSALS = (BMCBadRequest, BMCNotSupported, BMCServerError)


class RedfishBoot(Capability):
    """One-time overrides and the persistent order."""

    async def set_network_boot(
        self, uri: str, target: BootTarget = BootTarget.PXE, *, http_boot_uri: str = ""
    ) -> BootOverride:
        """Sets the override once. What is read back may be Continuous: then the caller has to clear it.

        Args: http_boot_uri is what UefiHttp loads; without it the firmware uses the URI that DHCP offers.
        Raises: BMCNotSupported when the BMC does not list the target.
        """
        carried: JSON = {"HttpBootUri": http_boot_uri} if http_boot_uri and target is BootTarget.UEFI_HTTP else {}
        return await self._set_override(await self._view(uri), uri, target, carried)

    async def set_medium_boot(self, uri: str) -> BootOverride:
        """The target is Cd, or UsbCd where the table of vendor facts says so or the BMC lists only that."""
        view = await self._view(uri)
        return await self._set_override(view, uri, medium_target(view.system), {})

    async def clear_boot_override(self, uri: str) -> BootOverride:
        """Tries Disabled, then None, then the disk, until the BMC no longer reports a boot from network or medium.

        Raises: the BMC's error, when the next boot would still go there.
        """
        view = await self._view(uri)
        refusal: BMCError | None = None
        for body, last_resort in _ways_to_clear(view.system.boot):
            if _is_clear(view.override) or (last_resort and not _leaves_disk(view.override)):
                break
            try:
                await self._patch_boot(view, body)
            except _REFUSALS as error:
                refusal = error
            view = await self._view(uri)
        if _leaves_disk(view.override) and refusal is not None:
            raise refusal
        return view.override

    async def set_boot_order(self, uri: str, order: tuple[str, ...]) -> None:
        """No write when the order is the same already."""
        view = await self._view(uri)
        current = view.system.boot.boot_order
        if not current:
            raise BMCNotSupported(f"{self.client.name} offers no boot order for this system.")
        if current == order:
            return
        unknown = [device for device in order if device not in current]
        if unknown:
            raise BMCBadRequest(f"bootOrder names {', '.join(unknown)}; this system has {', '.join(current)}.")
        await self._patch_boot(view, {"BootOrder": list(order)})

    async def _set_override(self, view: "_View", uri: str, target: BootTarget, carried: JSON) -> BootOverride:
        wanted = _override(self.client.name, view.system.boot, target) | carried
        mode = _mode(view.system, target)
        try:
            await self._patch_boot(view, wanted | mode)
        except _REFUSALS as error:
            if not mode or isinstance(error, BMCBusy) or system_quirks(view.system).repeat_boot_mode:
                raise
            await self._patch_boot(await self._view(uri), wanted)
        return (await self._view(uri)).override

    async def _view(self, uri: str) -> "_View":
        resource, system = await self._read_system(uri)
        settings = system.settings.settings_object.odata_id
        if not (settings and system_quirks(system).boot_in_settings):
            return _View(resource, system, convert.boot_override(system.boot))
        future = await self.client.get(local_path(settings))
        return _View(future, system, convert.boot_override(future.decode(System).boot))

    async def _patch_boot(self, view: "_View", boot: JSON) -> None:
        await self.client.patch(view.resource.path, {"Boot": boot}, etag=view.resource.etag)


@dataclass(frozen=True)
class _View:
    """A system's boot settings and the resource that takes changes to them, mostly the system itself."""

    resource: Resource
    system: System
    override: BootOverride


def medium_target(system: System) -> BootTarget:
    """The target that boots a virtual medium."""
    usb_only = not _listed(system.boot.target_values, BootTarget.CD)
    usb = usb_only or system_quirks(system).medium_is_usb_cd
    return BootTarget.USB_CD if usb and _listed(system.boot.target_values, BootTarget.USB_CD) else BootTarget.CD


def offers(system: System, target: BootTarget) -> bool:
    """True when the BMC lists this target, or lists none."""
    return _listed(system.boot.target_values, target) is not None


def _override(name: str, boot: Boot, target: BootTarget) -> JSON:
    spelling = _listed(boot.target_values, target)
    if spelling is None:
        raise BMCNotSupported(f"{name} cannot boot from {target}: it offers {', '.join(boot.target_values)}.")
    enabled = _listed(boot.enabled_values, BootEnabled.ONCE) or BootEnabled.CONTINUOUS.value
    return {"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": spelling}


def _listed(values: Sequence[str], wanted: str) -> str | None:
    """The BMC's spelling of `wanted`; unchanged where the BMC lists nothing; None where it lists only other values."""
    if not values:
        return str(wanted)
    return next((value for value in values if value.lower() == wanted.lower()), None)


def _mode(system: System, target: BootTarget) -> JSON:
    """UEFI where it must be sent; otherwise nothing, because BMCs that report no mode reject one."""
    boot = system.boot
    if not boot.boot_source_override_mode:
        return {}
    uefi = "UEFI" in boot.mode_values
    stray = boot.boot_source_override_mode != "UEFI" and (uefi or target is not BootTarget.PXE)
    if stray or (system_quirks(system).repeat_boot_mode and (uefi or not boot.mode_values)):
        return {"BootSourceOverrideMode": "UEFI"}
    return {}


def _ways_to_clear(boot: Boot) -> Iterator[tuple[JSON, bool]]:
    """Request bodies to try in turn, and whether each is a last resort."""
    disabled = {"BootSourceOverrideEnabled": "Disabled"}
    yield disabled, False
    if _listed(boot.target_values, BootTarget.NONE):
        yield disabled | {"BootSourceOverrideTarget": "None"}, False
    if _listed(boot.target_values, BootTarget.HDD):
        yield {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Hdd"}, True


def _leaves_disk(override: BootOverride) -> bool:
    return override.is_network or override.is_medium


def _is_clear(override: BootOverride) -> bool:
    return override.enabled in ("", "Disabled") or override.target in ("", "None")
