"""A simulated machine that erases its drives, as metalprobe does on a real one."""

import asyncio
import json
from typing import Any

import pytest

from metal.sim.machine.state import Disk
from metal.sim.options import Options
from tests.sim.site import REGISTRY, Bench, BootServer

pytestmark = pytest.mark.looptime
OPTIONS = Options(power=3.0, boot=20.0, shutdown=5.0, jitter=0.0, erase=40.0)
LONG = 120.0


class Registry(BootServer):
    """Accepts sanitization reports as well."""

    def _body(self, what: str, path: str, *rest: Any) -> bytes:
        if what == "sanitization":
            _, headers, body = rest
            self.reports.append((headers["authorization"], json.loads(body)))
            return b"taken"
        return super()._body(what, path, *rest)


class Interrupted(Registry):
    """Accepts one report, and fails six times after it."""

    def _body(self, what: str, path: str, *rest: Any) -> bytes:
        body = super()._body(what, path, *rest)
        if what == "sanitization" and len(self.reports) == 1:
            self.failures[what] = 6
        return body


class Undecided(Registry):
    """Has not decided yet whether the drives may be erased."""

    def __init__(self) -> None:
        super().__init__(refuse={"sanitization": 202})


def task(uuid: str, policy: str = "Clear", *serials: str) -> dict[str, Any]:
    """An Ignition that erases the drives; `serials` are listed as known."""
    start = (
        f"ExecStart=/usr/bin/python3 /opt/p.pyz sanitize --registry-url {REGISTRY} --server-uuid {uuid} "
        "--token @/etc/t --task /etc/task.json"
    )
    listed = [{"name": "", "serialNumber": serial, "wwn": "", "size": 0, "slot": ""} for serial in serials]
    contents = json.dumps({"policy": policy, "drives": listed}, separators=(",", ":"))
    files = [
        {"path": "/etc/t", "contents": {"source": "data:,report-token"}},
        {"path": "/etc/task.json", "contents": {"source": f"data:,{contents}"}},
    ]
    unit = {"name": "metalprobe-sanitize.service", "enabled": True, "contents": f"[Service]\n{start}\n"}
    return {"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "systemd": {"units": [unit]}}


async def erased(
    *faults: str, policy: str = "Clear", kind: type[Registry] = Registry
) -> tuple[Bench, list[dict[str, Any]]]:
    """A machine with a tenant's data after its erasure, and the reports that it sent."""
    bench = Bench(OPTIONS)
    registry = kind()
    object.__setattr__(bench.machine.site, "network", registry)
    machine = bench.machine
    machine.state.disk = Disk(image="os", marker="secret data")
    registry.ignition = task(machine.identity.uuid, policy, *(disk.serial for disk in machine.hardware.disks))
    for fault in faults:
        machine.faults.switch(fault)
    bench.netboot()
    machine.reset("On")
    await asyncio.sleep(LONG)
    assert {authorization for authorization, _ in registry.reports} <= {"Bearer report-token"}
    return bench, [body["data"] for _, body in registry.reports]


@pytest.mark.parametrize("policy", ["Clear", "Purge"])
async def test_an_honest_machine_erases_and_tells_of_it(policy: str) -> None:
    """Progress, then one final report; the tenant's data is erased, with the class of the task's policy."""
    bench, reports = await erased(policy=policy)
    assert bench.systems == ["sanitizer"]
    assert [report["done"] for report in reports] == [False] * 4 + [True]
    assert [report["drives"][0]["percent"] for report in reports] == [0, 25, 50, 75, 100]
    assert all((d["result"], d["class"]) == ("Succeeded", policy) for d in reports[-1]["drives"])
    assert bench.machine.state.disk.marker == ""


async def test_a_lying_drive_is_found_out_by_reading_back() -> None:
    """The data remains, and the samples show it."""
    bench, reports = await erased("lying_drive")
    first = reports[-1]["drives"][0]
    assert (first["result"], first["samplesDiffer"]) == ("Failed", first["samplesRead"])
    assert bench.machine.state.disk.marker


async def test_a_dying_drive_fails() -> None:
    """Its data remains."""
    bench, reports = await erased("dying_drive")
    assert (reports[-1]["drives"][0]["result"], reports[-1]["drives"][0]["class"]) == ("Failed", "")
    assert bench.machine.state.disk.marker


async def test_a_missing_drive_is_named_as_missing() -> None:
    """From the task, which lists the known drives."""
    bench, reports = await erased("missing_drive")
    results = {d["serialNumber"]: d["result"] for d in reports[-1]["drives"]}
    assert results[bench.machine.hardware.disks[0].serial] == "Missing"
    assert bench.machine.state.disk.marker


async def test_a_power_loss_ends_it_half_way() -> None:
    """No final report; the data remains."""
    bench, reports = await erased("power_loss_in_sanitization")
    assert not any(report["done"] for report in reports)
    assert (bench.powers[-1], bench.machine.state.os) == ("Off", None)
    assert bench.machine.state.disk.marker


async def test_the_final_report_is_sent_until_it_is_heard() -> None:
    """Progress reports are not repeated: once the first is accepted, the erasure does not wait for them."""
    _, reports = await erased(kind=Interrupted)
    assert [report["done"] for report in reports] == [False, True]


async def test_nothing_is_erased_before_it_is_allowed() -> None:
    """A registry that answers 202 is asked again; the data remains."""
    bench, _ = await erased(kind=Undecided)
    assert bench.systems == ["sanitizer"]
    assert bench.machine.state.disk.marker
    assert not any(entry.details.get("erased") for entry in bench.machine.site.history.of(bench.machine.identity.uuid))


async def test_without_a_task_nothing_is_erased() -> None:
    """An emergency shell, and the data remains."""
    bench = Bench(OPTIONS)
    bench.machine.state.disk = Disk(marker="secret data")
    bench.server.ignition = task(bench.machine.identity.uuid)
    bench.server.ignition["storage"]["files"].pop()
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["emergency"]
    assert bench.machine.state.disk.marker
