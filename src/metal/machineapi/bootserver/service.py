"""The boot server without HTTP: chainload script, iPXE script and Ignition.

Every request is checked against the boot window in the Server's status, which controllers open before they power a
machine on. The script goes to an address that DHCP leased to one of the MAC addresses that the server's BMC shows. Only
where the window permits the trust FirstRequest, and no such lease is known, it goes to the first requester after the
BMC has shown power On; a second requester stops the boot, and the Ignition waits until that did not happen. The script
carries a token for image and Ignition; fetching the Ignition spends it, and a root file system that is fetched later
has a token of its own. Each step is a conditional write of the boot window, so that of two concurrent requests, also on
two replicas, one succeeds. Nothing is kept in memory.
"""

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from metal.api.boot_window import BootWindow, Trust
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.boot import script
from metal.boot.butane import Butane
from metal.boot.errors import ScriptError
from metal.boot.images import Images
from metal.boot.tokens import NewToken, new_token
from metal.kube.client.protocol import Client
from metal.kube.client.retrying import RetryingClient
from metal.kube.meta.clock import Clock
from metal.machine import boot_window
from metal.machine.boot_window import BootContested, Refused, TokenMissing, TrustTooLow
from metal.machine.boot_window_store import BootWindowStore
from metal.machine.directory import Directory, plain_ip
from metal.machine.identity import is_shared
from metal.machine.interfaces import out_of_band
from metal.machineapi.bootserver.bootable import Bootables, NotReady
from metal.machineapi.bootserver.image_endpoint import ImageEndpoint
from metal.machineapi.bootserver.loader_endpoint import LoaderEndpoint
from metal.machineapi.bootserver.settings import BootSettings
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Response, text, unavailable

IGNITION_TYPE = "application/vnd.coreos.ignition+json"
_RETRY = 5.0
"""Seconds after which a machine may ask again for a script that depends on a lease or a reading of the BMC."""
_LEASE_POLLS, _LEASE_PAUSE = 8, 0.25
"""How often and with which pause, in seconds, a lease is looked up: the DHCP server reports it at the same time."""
_RETRY_MOST = 30.0
"""Longest Retry-After in seconds: a lease that is reported meanwhile has the Ignition served earlier."""


class BootService:
    """Serves machines. All state is in the API, so that any replica may answer."""

    def __init__(  # noqa: PLR0913 - its parts; clock, tokens and randomness only by keyword
        self,
        client: Client,
        kinds: Kinds,
        directory: Directory,
        images: Images,
        refusals: Refusals,
        settings: BootSettings,
        *,
        clock: Clock,
        token: NewToken = new_token,
        rng: random.Random | None = None,
    ) -> None:
        retrying = RetryingClient(client, rng=rng)
        self._windows = BootWindowStore(retrying, kinds, directory, clock, rng)
        self._bootables = Bootables(retrying, kinds, Butane(settings.butane))
        self._directory, self._refusals, self._settings = directory, refusals, settings
        self._clock, self._token = clock, token
        self._race_window = timedelta(seconds=settings.race_window)
        self.loaders = LoaderEndpoint(settings.ipxe, refusals)
        self.images = ImageEndpoint(self._windows, self._bootables, images, refusals, settings, clock)

    async def chainload(self) -> Response:
        """The script for every machine; it requests the machine's own script by UUID."""
        return text(200, script.chainload(self._settings.base_url).rstrip("\n"))

    async def script(self, uuid: str, client: str) -> Response:
        """The script of the boot in progress, with a new token.

        Where a lease of the server's MAC addresses is known, only the leased address gets it; else the first requester,
        if the boot window permits that.
        """
        server: Server | None = None
        try:
            server = await self._find(uuid)
            return await self._script(server, uuid.lower(), client)
        except Refused as refused:
            if isinstance(refused, BootContested) and server is not None:
                await self._contest(server)
            if _may_be_leased(server, refused):
                refused.retry_after = _RETRY
            return self._refuse("script", refused, client, server)
        except (NotReady, ScriptError) as exc:
            return self._unready("script", client, exc, server)

    async def _script(self, server: Server, uuid: str, client: str) -> Response:
        token, image_token = self._token(), self._token()
        if _is_still_off(server):
            raise Refused("BootWindowClosed", "the machine has not been powered on for this boot")
        leases = await self._leases_of_boot(server)
        if is_shared(uuid) and not leases:
            raise Refused("IdentityAmbiguous", "many machines have this UUID, and no lease shows which of them asks")
        step = self._serve_script(server, leases, token, image_token, client)
        window = step(server.status.boot_window)  # refuse before anything else is read
        bootable = await self._bootables.of(window)
        body = bootable.plan.script(self._settings.base_url, uuid, token, image_token)
        await self._windows.change(server, step)
        return Response(200, body.encode())

    def _serve_script(
        self, server: Server, leases: frozenset[str], token: str, image_token: str, client: str
    ) -> Callable[[BootWindow | None], BootWindow]:
        def step(window: BootWindow | None) -> BootWindow:
            now = self._clock()
            earlier = window.client_address if window is not None else ""
            if leases and client not in leases:
                boot_window.require_open(window, now)
                raise Refused(
                    "ClientNotLeased", "DHCP leased other addresses than this one to the server's MAC addresses"
                )
            served = boot_window.serve_script(
                window,
                now,
                token=token,
                image_token=image_token,
                client=client,
                lease_known=bool(leases) and (not earlier or earlier in leases),
                trust=Trust.LEASE if leases else Trust.FIRST_REQUEST,
                contest_period=self._race_window,
            )
            if served.trust == Trust.FIRST_REQUEST:
                _require_on(server)
            return served

        return step

    async def ignition(self, uuid: str, token: str, client: str) -> Response:
        """The Ignition, once, to the holder of the script's token; a lost answer may be repeated for a short time."""
        server: Server | None = None
        try:
            server = await self._find(uuid)
            return await self._ignition(server, token, client)
        except Refused as refused:
            return self._refuse("ignition", refused, client, server)
        except NotReady as exc:
            return self._unready("ignition", client, exc, server)

    async def _ignition(self, server: Server, token: str, client: str) -> Response:
        if not token:
            raise TokenMissing
        report, leases = self._token(), await self._leases(server)

        def step(window: BootWindow | None) -> BootWindow:
            return boot_window.serve_ignition(
                window,
                self._clock(),
                token=token,
                report_token=report,
                client=client,
                leased=window is not None and window.client_address in leases,
                contest_period=self._race_window,
            )

        window = step(server.status.boot_window)  # refuse before any Secret is read
        bootable = await self._bootables.of(window)
        body = await self._bootables.ignition(
            bootable.config, token=report if boot_window.expects_report(window) else ""
        )
        await self._windows.change(server, step)
        return Response(200, body, IGNITION_TYPE)

    async def _find(self, uuid: str) -> Server:
        try:
            server = await self._windows.find(uuid)
        except ValueError:
            server = None
        if server is None:
            raise Refused("UnknownMachine", "no server has this UUID")
        return server

    async def _leases_of_boot(self, server: Server) -> frozenset[str]:
        """The leases; while a boot is in progress a moment is granted to the first one."""
        leases = await self._leases(server)
        for _ in range(_LEASE_POLLS):
            shown = out_of_band(server.status.network_interfaces)
            if leases or not shown or not boot_window.is_open(server.status.boot_window, self._clock()):
                break
            await asyncio.sleep(_LEASE_PAUSE)
            leases = await self._leases(server)
        return leases

    async def _leases(self, server: Server) -> frozenset[str]:
        """The addresses that are leased to MAC addresses which the BMC shows; those of a report prove nothing."""
        macs = out_of_band(server.status.network_interfaces)
        return frozenset(map(plain_ip, await self._directory.leases(macs))) if macs else frozenset()

    async def _contest(self, server: Server) -> None:
        """Stop the boot for all requesters. The Server's controller starts it again."""

        def step(window: BootWindow | None) -> BootWindow:
            if window is None or not boot_window.is_contestable(window, self._clock(), self._race_window):
                raise BootContested("the boot has been stopped already")
            return boot_window.contest(window)

        with suppress(Refused):
            await self._windows.change(await self._windows.reread(server), step)

    def _refuse(self, endpoint: str, refused: Refused, client: str, server: Server | None) -> Response:
        if refused.retry_after:
            self._refusals.note(endpoint, refused.reason, client, str(refused), server)
            return unavailable("not ready yet, try again later", math.ceil(min(refused.retry_after, _RETRY_MOST)))
        return self._refusals.refuse(endpoint, refused.reason, client, str(refused), server)

    def _unready(self, endpoint: str, client: str, problem: Exception, server: Server | None) -> Response:
        self._refusals.note(endpoint, "NotReady", client, str(problem), server)
        return unavailable("not ready yet, try again later")


def _is_still_off(server: Server) -> bool:
    """True when power was not requested yet, so that a request for the script cannot come from the machine."""
    status = server.status
    asked = status.power_request is not None and status.power_request.target == "On"
    return status.power_state == "Off" and not asked and status.on_requested_at is None


def _require_on(server: Server) -> None:
    """Refuse whoever asks while the machine is off. Raises Refused.

    A BMC may show On seconds after the machine was switched on, so that the machine itself may ask again.
    """
    shown = server.status.power_state
    if shown != "On":
        raise Refused("MachineOff", f"the BMC shows power {shown or 'unknown'}", retry_after=_RETRY)


def _may_be_leased(server: Server | None, refused: Refused) -> bool:
    """True when the lease that the boot requires may only not be reported yet."""
    if server is None or not isinstance(refused, TrustTooLow) or refused.minimum != Trust.LEASE:
        return False
    return bool(out_of_band(server.status.network_interfaces))
