"""The registry without HTTP: accepts reports from the holder of a boot's report token.

A request names a system UUID and a report token. The token was in the Ignition of the boot, and the Server's boot
window keeps its digest and the purpose of the boot. `register` accepts an inventory in a discovery boot and stores it
in the ConfigMap inventory-<server>; `sanitization` accepts the progress and result of an erasure; `bootstate` sets a
condition on the boot configuration. A report is stored before its token is spent: after a crash between the two the
probe sends it again, and a repeated report is answered with 200. Nothing is kept in memory, so any replica may answer.
"""

import random
from dataclasses import dataclass, field

from metal.api import names
from metal.api.boot_window import BootWindow, Purpose
from metal.api.core import CONFIG_MAP
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import Clock
from metal.kube.meta.permissions import APPLY, Permission, Where, disowns
from metal.machine import boot_window
from metal.machine.boot_window import Refused, TokenMissing
from metal.machine.boot_window_store import BootWindowStore
from metal.machine.directory import Directory
from metal.machineapi.http.refusals import Refusals
from metal.machineapi.http.response import Response, text
from metal.machineapi.registry import boot_state as bootstate
from metal.machineapi.registry.limits import Limits, Malformed, TooLarge
from metal.machineapi.registry.message import Message, parse
from metal.machineapi.registry.sanitization import SanitizationReports

MANAGER = "metal-registry"


@dataclass(frozen=True)
class RegistrySettings:
    """Settings of the registry."""

    namespace: str = "metal-system"
    """Namespace of the inventories: ConfigMap inventory-<server>, key report.json."""
    limits: Limits = field(default_factory=Limits)
    """Limits of a report."""


class RegistryService:
    """Serves metalprobe. A report is stored in the API before the request is answered."""

    def __init__(
        self, client: Client, kinds: Kinds, directory: Directory, refusals: Refusals, settings: RegistrySettings, *,
        clock: Clock, rng: random.Random | None = None,
    ) -> None:  # fmt: skip
        self._client, self._kinds, self._clock = client, kinds, clock
        self._windows = BootWindowStore(client, kinds, directory, clock, rng)
        self._erasures = SanitizationReports(
            client, kinds, self._windows, settings.limits, clock, rng or random.Random()
        )
        self._refusals, self.settings = refusals, settings

    async def register(self, authorization: str, body: bytes, client: str) -> Response:
        """201 for a new report, 200 for a repetition of the same one, else a refusal."""
        return await self._handle("register", authorization, body, client)

    async def bootstate(self, authorization: str, body: bytes, client: str) -> Response:
        """200 for `booted` with a valid report token; sets a condition on the boot configuration."""
        return await self._handle("bootstate", authorization, body, client)

    async def sanitization(self, authorization: str, body: bytes, client: str) -> Response:
        """200 for progress of an erasure, 201 for its final report, 200 for a repetition of that, else a refusal."""
        return await self._handle("sanitization", authorization, body, client)

    def not_offered(self, endpoint: str, client: str) -> Response:
        """Refuses reads and deletes of reports; these are available through the API only."""
        return self._refusals.refuse(endpoint, "NotOffered", client, "machines may not read or delete reports")

    async def _handle(self, endpoint: str, authorization: str, body: bytes, client: str) -> Response:
        server: Server | None = None
        try:
            message = self._message(authorization, body)
            server = await self._find(message.uuid)
            if endpoint == "bootstate":
                return await self._bootstate(server, message)
            if endpoint == "sanitization":
                return await self._erasures.take(server, message)
            return await self._register(server, message)
        except Refused as refused:
            status = 401 if isinstance(refused, TokenMissing) else 403
            return self._refusals.refuse(endpoint, refused.reason, client, str(refused), server, status=status)
        except (Malformed, TooLarge) as exc:
            return self._refusals.refuse(endpoint, type(exc).__name__, client, str(exc), server)

    def _message(self, authorization: str, body: bytes) -> Message:
        if len(body) > self.settings.limits.body:
            raise TooLarge(f"a body of {len(body)} bytes")
        return parse(authorization, body)

    async def _find(self, uuid: str) -> Server:
        try:
            server = await self._windows.find(uuid)
        except ValueError:
            raise Malformed("systemUUID is not a UUID") from None
        if server is None:
            raise Refused("UnknownMachine", "no server has this UUID")
        return server

    async def _register(self, server: Server, message: Message) -> Response:
        receipt = boot_window.report_receipt(message.token, message.data)
        if boot_window.is_repeat(server.status.boot_window, self._clock(), receipt):
            return text(200, "already registered")
        window = boot_window.check_report_token(server.status.boot_window, self._clock(), message.token)
        if window.purpose != Purpose.DISCOVERY:
            raise Refused("PurposeMismatch", "this boot is not a discovery boot")
        report = message.report(self.settings.limits)
        if len(report) > self.settings.limits.kept:
            raise TooLarge(f"a report of {len(report)} bytes in compact JSON")
        await self._store(server, window, report)

        def step(window: BootWindow | None) -> BootWindow:
            return boot_window.accept_report(window, self._clock(), token=message.token, receipt=receipt)

        await self._windows.change(server, step)
        return text(201, "registered")

    async def _store(self, server: Server, window: BootWindow, report: bytes) -> None:
        meta = server.metadata
        owner = {
            "apiVersion": self._kinds.server.api_version,
            "kind": self._kinds.server.kind,
            "name": meta.name,
            "uid": meta.uid,
        }
        notes = {
            self._kinds.key(names.REPORT_BOOT): window.id,
            self._kinds.key(names.REPORTED_AT): self._clock().isoformat(),
        }
        inventory = {
            "metadata": {
                "name": names.inventory_name(meta.name),
                "namespace": self.settings.namespace,
                "ownerReferences": [owner],
                "annotations": notes,
            },
            "data": {names.REPORT_KEY: report.decode()},
        }
        await self._client.apply(CONFIG_MAP, inventory, manager=MANAGER)

    async def _bootstate(self, server: Server, message: Message) -> Response:
        window = boot_window.check_report_token(server.status.boot_window, self._clock(), message.token)
        if message.booted:
            await bootstate.record(self._client, self._kinds, window, self._clock())
        return text(200, "recorded")


def required_permissions() -> tuple[Permission, ...]:
    """The permissions of the registry. The ConfigMap's name contains the Server's, so no rule can list it."""
    home = Where.HOME
    return (Permission(CONFIG_MAP, APPLY, "stores the report of a machine", where=home), disowns(CONFIG_MAP, home))
