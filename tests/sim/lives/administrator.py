"""What an administrator does at the end: each wait for a decision is ended as its condition says."""

import asyncio
from typing import Any

from metal.api.claim import ServerClaim
from metal.api.names import ACCEPT_INTERFACES
from metal.api.server import Server
from metal.controllers.server.tenancy import owed_drives
from metal.controllers.server.tenancy.sanitization import ACCEPT
from metal.kube.meta.conditions import is_true
from metal.machine import tenancy
from metal.machine.charge import in_charge
from metal.machine.uuids import spellings
from metal.sim.history import MachineEvent
from metal.sim.machine.machine import Machine
from tests.sim.lives.identities import Identities
from tests.sim.plane import KINDS, is_of


class Administrator(Identities):
    """Decides by the machines, which an administrator can look at."""

    async def _let_go(self) -> None:
        """Drives that were exchanged are returned."""
        await super()._let_go()
        for _ in range(120):
            if self.boots():
                await asyncio.sleep(10)
        for only_first in self.swaps[::-1]:
            self._swap_drives(only_first, button=False)

    async def _help(self) -> None:
        for machine in self.machines:
            servers = [one for one in await self.world.servers() if self._describes(one, machine)]
            if servers:
                await self._one_server(machine, servers)
        for server in await self.world.servers():
            await self.try_(self._decide(server))
        for claim in (await self.world.client.list(KINDS.claim)).items:
            await self.try_(self._boot_again(claim))

    def _describes(self, server: Server, machine: Machine) -> bool:
        """Also by a UUID that the machine had before its mainboard was replaced."""
        uuids, changed = {machine.identity.uuid}, True
        while changed:
            found = {e.machine for e in self._boards() if str(e.details["becomes"]) in uuids}
            changed = not found <= uuids
            uuids |= found
        return any(server.uuid in spellings(uuid) for uuid in uuids)

    def _boards(self) -> list[MachineEvent]:
        history = self.world.fleet.history
        return [e for e in history if isinstance(e, MachineEvent) and e.what == "mainboard"]

    async def _one_server(self, machine: Machine, servers: list[Server]) -> None:
        """Delete what also describes the machine, and correct UUID and BMC of the one that stays."""
        stays = in_charge(servers) or await self._with_tenant(machine, servers)
        for server in servers:
            if server.metadata.name != stays.metadata.name:
                await self.try_(self.world.client.delete(KINDS.server, server.metadata.name))
        body: dict[str, Any] = {} if is_of(stays, machine) else {"systemUUID": machine.identity.uuid}
        bmcs = await self._bmcs_of(machine)
        if bmcs and (stays.spec.bmc_ref is None or stays.spec.bmc_ref.name not in bmcs):
            body["bmcRef"] = {"name": bmcs[0]}
        if body:
            await self.try_(self.world.client.patch(KINDS.server, stays.metadata.name, {"spec": body}))

    async def _with_tenant(self, machine: Machine, servers: list[Server]) -> Server:
        """The Server whose claim has its data on the machine, else the oldest."""
        claims = {c.metadata.uid: c for c in (await self.world.client.list(KINDS.claim)).items}
        for server in servers:
            if tenancy.of(server).uid in claims:
                return server
        return servers[0]

    async def _bmcs_of(self, machine: Machine) -> list[str]:
        """Names of the BMC objects that answer, with an address of a BMC that shows the machine."""
        addresses = {bmc.board.ip for bmc in self.world.fleet.bmcs.values() if bmc.machine is machine}
        found = (await self.world.client.list(KINDS.bmc)).items
        ready = [one for one in found if is_true(one.status.conditions, "Ready")]
        return sorted(one.metadata.name for one in ready if one.status.ip in addresses)

    async def _decide(self, server: Server) -> None:
        status, operation, waits = server.status, "", server.status.wait
        if _is_former_tenant(server) and await self._release_all():
            return
        if waits is not None and waits.for_ == "DriveOwed":
            operation = owed_drives.ACCEPT
        elif waits is not None and waits.for_ == "TakeoverGoAhead":
            operation = "retry"
        elif status.state == "Error":
            failure = status.failure
            owed = failure is not None and failure.reason == "SanitizationOwed" and "is missing" in failure.message
            foreign = failure is not None and failure.reason == "IdentityMismatch"
            operation = ACCEPT if owed else ACCEPT_INTERFACES if foreign else "retry"
        if operation:
            body = {"metadata": {"annotations": {KINDS.key("operation"): operation}}}
            await self.world.client.patch(KINDS.server, server.metadata.name, body)
        elif status.state == "Released":
            await self.world.client.patch(KINDS.server, server.metadata.name, {"spec": {"serverClaimRef": None}})

    async def _boot_again(self, claim: ServerClaim) -> None:
        """As its owner would: the machine of a claim has no system on its drive, so it is booted from the network."""
        servers = [one for one in await self.world.servers() if _is_settled(one, claim)]
        for machine in self.machines:
            empty = machine.state.power == "On" and machine.state.os is None and not machine.state.disk.marker
            if empty and not machine.state.netbooting and any(is_of(one, machine) for one in servers):
                spec = {"bootGeneration": claim.spec.boot_generation + 1}
                await self.world.client.patch(KINDS.claim, claim.metadata.name, {"spec": spec}, "default")

    async def _release_all(self) -> bool:
        """Whose machine it is cannot be decided here: all claims are given up. False when there are none."""
        claims = (await self.world.client.list(KINDS.claim)).items
        for claim in claims:
            await self.try_(self.world.client.delete(KINDS.claim, claim.metadata.name, claim.metadata.namespace))
        return bool(claims)


def _is_settled(server: Server, claim: ServerClaim) -> bool:
    """Whether the server is the claim's, and waits for nothing."""
    ref, status = server.spec.server_claim_ref, server.status
    return ref is not None and ref.name == claim.metadata.name and status.state == "Reserved" and status.wait is None


def _is_former_tenant(server: Server) -> bool:
    waits, failure = server.status.wait, server.status.failure
    return "FormerTenant" in (waits.for_ if waits is not None else "", failure.reason if failure is not None else "")
