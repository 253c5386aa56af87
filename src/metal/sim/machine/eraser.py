"""The simulated `metalprobe sanitize`: erases all drives of a machine concurrently and reports to the registry."""

from datetime import datetime
from typing import Any

import msgspec

from metal.sim.machine.hardware import Disk as Drive
from metal.sim.machine.host import Host
from metal.sim.machine.network import AnswerLost, Unreachable
from metal.sim.machine.report import drive_name
from metal.sim.machine.state import OS, Disk

_STEPS = 4
"""Steps of an erasure; each is followed by a report."""
_SAMPLES = 64
_SLOW = 100
_RETRY_MOST = 8.0
_CONFIRM = 1800.0
"""Seconds for which a registry that never answers is asked, as `metalprobe sanitize` does."""
_ASK_AGAIN = 202
"""Status for a question without a decision."""
_METHODS = {
    "Purge": ("NVMeSanitizeCryptoErase", "Purge"),
    "Clear": ("NVMeFormatUserDataErase", "Clear"),
}


class Eraser:
    """One erasure. It ends with the final report, or with the power."""

    def __init__(self, machine: Host, system: OS) -> None:
        self._machine, self._system = machine, system
        task: dict[str, Any] = msgspec.json.decode(system.task)
        self._policy: str = task["policy"]
        self._listed: list[dict[str, Any]] = task["drives"]
        self._started = machine.site.clock()
        numbers = {disk.serial: n for n, disk in enumerate(machine.hardware.disks)}
        self._drives = [_entry(disk, numbers[disk.serial]) for disk in machine.drives]

    async def run(self) -> None:
        """Erase once the registry has allowed it, and report until the final report is accepted or refused."""
        machine = self._machine
        if not await self._allowed():
            return
        for drive in self._drives:
            drive.update(result="Running", startedAt=_stamp(machine.site.clock()))
        for step in range(1, _STEPS + 1):
            seconds = machine.site.options.erase * (_SLOW if machine.faults.slow_drives else 1)
            await machine.pause(seconds / _STEPS)
            if machine.faults.power_loss_in_sanitization and step > _STEPS // 2:
                machine.lose_power()
                await machine.pause(0)  # the task is cancelled here
            for drive in self._drives:
                drive["percent"] = 100 * step // _STEPS
            if step < _STEPS:
                await self._send(done=False)
        self._finish()
        await self._send_final()

    async def _allowed(self) -> bool:
        """Whether the registry allows the erasure of the drives that the system sees; nothing is erased before."""
        delay, waited, known = 1.0, 0.0, False
        while not _is_final(status := await self._send(done=False, awaitsPermission=True)):
            known = known or status == _ASK_AGAIN
            if waited >= _CONFIRM and not known:
                return False
            await self._machine.pause(delay)
            waited, delay = waited + delay, min(_RETRY_MOST, delay * 2)
        return 200 <= status < 300

    def _finish(self) -> None:
        first = self._machine.hardware.disks[0].serial
        for drive in self._drives:
            drive["endedAt"] = _stamp(self._machine.site.clock())
            self._end(drive, is_first=drive["serialNumber"] == first)
        seen = {drive["serialNumber"] for drive in self._drives}
        self._drives += [_missing(listed) for listed in self._listed if listed["serialNumber"] not in seen]

    def _end(self, drive: dict[str, Any], *, is_first: bool) -> None:
        machine = self._machine
        method, reached = _METHODS[self._policy]
        drive.update(method=method, samplesRead=_SAMPLES)
        if is_first and machine.faults.dying_drive:
            drive.update(result="Failed", percent=50, samplesRead=0, message="input/output error during the erasure")
        elif is_first and machine.faults.lying_drive:
            drive.update(
                result="Failed", samplesDiffer=_SAMPLES, message="the drive reports success and keeps its data"
            )
        else:
            drive.update({"result": "Succeeded", "class": reached})
            if is_first:
                machine.state.disk = Disk()
            serial = drive["serialNumber"]
            machine.note("disk", drive=drive["name"], serial=serial, erased=method, first=is_first)

    async def _send_final(self) -> None:
        """Sends the final report until it is accepted or refused."""
        delay = 1.0
        while True:
            status = await self._send(done=True)
            if _is_final(status):
                self._system.reported = True
                return
            await self._machine.pause(delay)
            delay = min(_RETRY_MOST, delay * 2)

    async def _send(self, *, done: bool, **more: bool) -> int:
        machine, system = self._machine, self._system
        now = machine.site.clock()
        data = {
            "done": done, "startedAt": _stamp(self._started), "now": _stamp(now), "problems": [],
            "drives": self._drives, **more,
        }  # fmt: skip
        headers = {"authorization": f"Bearer {system.token}", "content-type": "application/json"}
        try:
            status, _, _ = await machine.ask(
                "POST", f"{system.registry_url}/sanitization", headers=headers, cut=machine.faults.no_registry,
                body=msgspec.json.encode({"systemUUID": system.uuid, "data": data}),
            )  # fmt: skip
        except AnswerLost as lost:
            machine.note("report", status=lost.status, done=done, heard=False)
            return 0
        except Unreachable:
            status = 0
        machine.note("report", status=status, done=done)
        return status


def _is_final(status: int) -> bool:
    """Whether the registry accepted or refused a report; otherwise it is sent again."""
    return 0 < status < 500 and status not in (_ASK_AGAIN, 429)


def _entry(disk: Drive, number: int) -> dict[str, Any]:
    return {
        "name": drive_name(number), "serialNumber": disk.serial, "wwn": f"eui.{disk.serial.lower()}",
        "model": disk.model, "transport": "NVMe", "size": disk.size, "rotational": False, "slot": "", "method": "",
        "class": "", "startedAt": None, "endedAt": None, "percent": 0, "secondsLeft": None, "samplesRead": 0,
        "samplesDiffer": 0, "result": "Pending", "message": "",
    }  # fmt: skip


def _missing(listed: dict[str, Any]) -> dict[str, Any]:
    known = {name: listed[name] for name in ("name", "serialNumber", "wwn", "size", "slot")}
    return {**known, "result": "Missing", "message": "the drive was not found"}


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
