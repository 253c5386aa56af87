"""Accepts the sanitization reports of a machine and stores them as evidence.

Before its first erasure the probe asks with the list of the drives that it sees. The list is stored in the evidence and
its digest in the boot window, which wakes the Server controller; the controller looks the drives up and allows these,
or ends the boot. Until then the answer is 202, and the probe asks again: any replica reads the decision from the API.
"""

import asyncio
import random

from metal.api.boot_window import BootWindow, Purpose
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.evidence import drives, record
from metal.evidence.report import InvalidReport, SanitizationReport, read
from metal.kube.client.errors import Conflict
from metal.kube.client.protocol import Client
from metal.kube.meta.clock import Clock
from metal.machine import boot_window
from metal.machine.boot_window import Refused
from metal.machine.boot_window_store import BootWindowStore, Busy
from metal.machineapi.http.response import Response, text
from metal.machineapi.registry.limits import Limits, Malformed
from metal.machineapi.registry.message import Message

_ATTEMPTS = 5
_PAUSE = 0.05
"""Seconds before the second attempt at most; doubles each time."""


class SanitizationReports:
    """Stores progress from time to time and the final report always; the final report spends the token."""

    def __init__(
        self, client: Client, kinds: Kinds, windows: BootWindowStore, limits: Limits, clock: Clock, rng: random.Random
    ) -> None:
        self._client, self._kinds, self._windows, self._limits = client, kinds, windows, limits
        self._clock, self._rng = clock, rng

    async def take(self, server: Server, message: Message) -> Response:
        """200 for progress and for a repeated final report, 201 for a final one, 202 for a question without a decision.

        Raises Refused, Malformed, Busy.
        """
        receipt = boot_window.report_receipt(message.token, message.data)
        if boot_window.is_repeat(server.status.boot_window, self._clock(), receipt):
            return text(200, "already accepted")
        window = self._require(server, message)
        report = self._read(message)
        await self._store(server, message, window, report)
        if report.awaits_permission:
            return await self._permission(server, message, window, drives.digest(report.drives))
        if not report.done:
            return text(200, "accepted")

        def step(window: BootWindow | None) -> BootWindow:
            return boot_window.accept_report(window, self._clock(), token=message.token, receipt=receipt)

        await self._windows.change(server, step)
        return text(201, "final report accepted")

    async def _permission(self, server: Server, message: Message, window: BootWindow, asked: str) -> Response:
        if window.erasure_allowed == asked:
            return text(200, "these drives may be erased")

        def step(window: BootWindow | None) -> BootWindow:
            return boot_window.ask_erasure(window, self._clock(), token=message.token, drives=asked)

        if window.erasure_asked != asked:
            await self._windows.change(server, step)
        return text(202, "the drives are being looked up; nothing may be erased yet")

    def _require(self, server: Server, message: Message) -> BootWindow:
        window = boot_window.check_report_token(server.status.boot_window, self._clock(), message.token)
        if window.purpose != Purpose.SANITIZATION:
            raise Refused("PurposeMismatch", f"this boot is a {window.purpose.lower()} boot, not a sanitization boot")
        return window

    def _read(self, message: Message) -> SanitizationReport:
        try:
            return read(message.report(self._limits))
        except InvalidReport as exc:
            raise Malformed(str(exc)) from None

    async def _store(self, server: Server, message: Message, window: BootWindow, report: SanitizationReport) -> None:
        """After a conflicting write the token is checked again against the newest Server."""
        for attempt in range(_ATTEMPTS):
            evidence = await record.find_or_create(self._client, self._kinds, server, window)
            if not record.is_due(evidence, report, self._clock()):
                return
            try:
                await record.store_report(self._client, self._kinds, evidence, report, self._clock())
            except Conflict:
                await asyncio.sleep(_PAUSE * 2.0**attempt * self._rng.uniform(0.5, 1.0))
                self._require(await self._windows.reread(server), message)
            else:
                return
        raise Busy(f"the evidence of {server.metadata.name} was changed by another client {_ATTEMPTS} times in a row")
