"""A BMC under test control, for reconciler tests: implements the protocols, records what is asked of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from metal.bmc.boot import BootOverride, BootTarget
from metal.bmc.errors import BMCError, BMCNotFound
from metal.bmc.events import Subscription
from metal.bmc.inventory import Inventory, NetworkInterface, Processor, Storage
from metal.bmc.pool import BMC, BMCEndpoint
from metal.bmc.power import PowerState, ResetType
from metal.bmc.systems import ManagerInfo, SystemInfo
from tests.controllers.no_carriers import NoCarriers
from tests.controllers.tap import Trap

UUID = "11111111-2222-3333-4444-555555555501"
URI = "/redfish/v1/Systems/1"
MAC = "52:54:00:77:00:11"


@dataclass
class FakeBMC(NoCarriers):
    """One system. Power follows a request after `delay` seconds of loop time."""

    uuid: str = UUID
    serial: str = "S1"
    delay: float = 3.0
    power: PowerState = PowerState.OFF
    boot: BootOverride = field(default_factory=lambda: BootOverride("Disabled", "None"))
    ignores_graceful: bool = False
    ignores_once: bool = False
    failure: BMCError | None = None
    calls: list[str] = field(default_factory=list)
    network_boots: int = 0
    disk_boots: int = 0
    led: str = "Off"
    order: tuple[str, ...] = ("Boot0001",)
    problems: tuple[str, ...] = ()
    trap: Trap | None = None
    refuses: dict[str, BMCError] = field(default_factory=dict)
    keeps_override: bool = False
    ignores_power: bool = False
    ignores_led: bool = False
    memory: int = 96 << 30
    storages: tuple[Storage, ...] = ()
    interfaces: tuple[NetworkInterface, ...] = (NetworkInterface(name="NIC.1", mac_address=MAC),)
    shows: PowerState | None = None
    last_boot: str = ""
    destinations: list[Subscription] = field(default_factory=list)
    firmware_pending: bool | None = False
    """What it shows of a firmware reset that is to come; None where it shows nothing."""
    keeps_firmware: bool = False
    forgets_firmware: bool = False
    _pending: asyncio.TimerHandle | None = None

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.failure is not None:
            raise self.failure
        if what in self.refuses:
            raise self.refuses[what]

    async def _write(self, what: str, act: Callable[[], None]) -> None:
        if self.trap is not None:
            await self.trap(what, "before")
        self._called(what)
        act()
        if self.trap is not None:
            await self.trap(what, "after")

    def reads(self) -> int:
        """How often the system was read."""
        return self.calls.count("system")

    def writes(self) -> list[str]:
        """What was asked of it, reads left out."""
        return [c for c in self.calls if c not in ("system", "systems", "inventory", "manager")]

    async def system(self, uri: str) -> SystemInfo:
        self._called("system")
        self._require(uri)
        return self._info()

    @staticmethod
    def _require(uri: str) -> None:
        if uri != URI:
            raise BMCNotFound(f"no system {uri}")

    def _info(self) -> SystemInfo:
        return SystemInfo(
            uri=URI, uuid=self.uuid, manufacturer="Contoso", model="3500", serial_number=self.serial,
            bios_version="P79", power_state=self.shows or self.power, indicator_led=self.led,
            total_memory_bytes=self.memory, boot=self.boot, boot_order=self.order,
        )  # fmt: skip

    async def systems(self) -> tuple[SystemInfo, ...]:
        self._called("systems")
        return (self._info(),)

    async def manager(self, uuid: str = "") -> ManagerInfo:
        self._called("manager")
        return ManagerInfo(uri="/redfish/v1/Managers/1")

    async def inventory(self, uri: str) -> Inventory:
        self._called("inventory")
        self._require(uri)
        return Inventory(
            system=self._info(),
            processors=(Processor(id="CPU1", total_cores=8),),
            storages=self.storages,
            network_interfaces=self.interfaces,
            problems=self.problems,
        )

    async def bios_attributes(self, uri: str) -> dict[str, str | int | bool | None]:
        self._called("bios_attributes")
        return {}

    async def reset_bios(self, uri: str) -> None:
        await self._write("reset_bios", self._take_firmware)

    async def clear_tpm(self, uri: str) -> None:
        await self._write("clear_tpm", self._take_firmware)

    async def is_bios_reset_pending(self, uri: str) -> bool | None:
        self._called("system")
        return self.firmware_pending

    async def is_tpm_clear_pending(self, uri: str) -> bool | None:
        return await self.is_bios_reset_pending(uri)

    def _take_firmware(self) -> None:
        if self.firmware_pending is not None and not self.forgets_firmware:
            self.firmware_pending = True

    async def power_on(self, uri: str) -> None:
        await self._write("power_on", lambda: self._become(PowerState.ON))

    async def power_off(self, uri: str, *, force: bool = False) -> None:
        heard = force or not self.ignores_graceful
        await self._write(
            "force_off" if force else "graceful_off", lambda: self._become(PowerState.OFF) if heard else None
        )

    async def reset(self, uri: str, reset_type: ResetType) -> None:
        state = PowerState.OFF if reset_type in (ResetType.FORCE_OFF, ResetType.GRACEFUL_SHUTDOWN) else PowerState.ON
        await self._write(f"reset {reset_type}", lambda: self._become(state))

    async def set_network_boot(self, uri: str, target: BootTarget = BootTarget.PXE) -> BootOverride:
        await self._write("set_network_boot", lambda: self._override(BootOverride("Once", target.value)))
        return self.boot

    async def clear_boot_override(self, uri: str) -> BootOverride:
        clear = self.boot if self.keeps_override else BootOverride("Disabled", "None")
        await self._write("clear_boot_override", lambda: self._override(clear))
        return self.boot

    def _override(self, override: BootOverride) -> None:
        self.boot = override

    async def set_boot_order(self, uri: str, order: tuple[str, ...]) -> None:
        self._called(f"set_boot_order {','.join(order)}")
        self.order = order

    async def set_indicator_led(self, uri: str, state: str) -> None:
        self._called(f"led {state}")
        if not self.ignores_led:
            self.led = state

    async def reset_manager(self, uuid: str = "") -> None:
        self._called("reset_manager")

    async def subscriptions(self) -> tuple[Subscription, ...]:
        self._called("subscriptions")
        return tuple(self.destinations)

    async def subscription(self, uri: str) -> Subscription | None:
        self._called("subscription")
        return next((known for known in self.destinations if known.uri == uri), None)

    async def subscribe(self, destination: str, context: str) -> str:
        self._called("subscribe")
        uri = f"/redfish/v1/EventService/Subscriptions/{self.calls.count('subscribe')}"
        self.destinations.append(Subscription(uri, destination, context))
        return uri

    async def unsubscribe(self, uri: str) -> None:
        self._called("unsubscribe")
        self.destinations = [known for known in self.destinations if known.uri != uri]

    async def send_test_event(self) -> None:
        self._called("send_test_event")

    def _become(self, state: PowerState) -> None:
        if self._pending is not None:
            self._pending.cancel()
        if self.ignores_power:
            return
        self._pending = asyncio.get_running_loop().call_later(self.delay, self._arrive, state)

    def _arrive(self, state: PowerState) -> None:
        if state is PowerState.ON and self.power is not PowerState.ON:
            if self.firmware_pending and not self.keeps_firmware:
                self.firmware_pending = False
            if self.boot.is_network:
                self.network_boots += 1
                self.last_boot = "network"
                if not self.ignores_once:
                    self.boot = replace(self.boot, enabled="Disabled", target="None")
            else:
                self.disk_boots += 1
                self.last_boot = "disk"
        self.power = state

    def lose_power(self) -> None:
        """Somebody pulls the plug."""
        self._arrive(PowerState.OFF)


@dataclass
class FakePool:
    """Hands out one BMC for each address."""

    bmcs: dict[str, FakeBMC]
    accesses: list[BMCEndpoint] = field(default_factory=list)

    def get(self, access: BMCEndpoint) -> BMC:
        self.accesses.append(access)
        return self.bmcs[access.address]

    def expect_silence(self, key: str, error: BMCError) -> None:
        """Every BMC answers at once."""

    async def certificate(self, address: str, port: int) -> str:
        return "ab" * 32

    async def drop(self, key: str) -> None:
        self.accesses = [a for a in self.accesses if a.key != key]

    async def aclose(self) -> None:
        self.accesses.clear()
