"""Every write to a BMC is one log line, and every request has its operation as a label."""

import json
from typing import Any, cast

import pytest
import structlog
from prometheus_client import CollectorRegistry

from metal.bmc import calls
from metal.bmc.boot import BootTarget
from metal.bmc.calls import READS, WRITES
from metal.bmc.errors import BMCError, BMCServerError
from metal.bmc.metrics import vendor_label
from metal.bmc.pool import BMC, BMCEndpoint
from metal.bmc.redfish.client import RedfishBMC
from metal.bmc.redfish.pool import RedfishPool
from tests.bmc.redfish.machine import fake, system
from tests.redfish.fakes import PASSWORD, SYSTEM, USER, FakeBMC, answer

pytestmark = pytest.mark.looptime
ACCESS = BMCEndpoint("bmc-1", "10.0.0.1", username=USER, password=PASSWORD)


class NotLeader(Exception):
    """What a permit raises."""


def connect(bmc: FakeBMC, registry: CollectorRegistry | None = None, **options: Any) -> BMC:
    return RedfishPool(lambda _: bmc, registry=registry, **options).get(ACCESS)


def lines(logs: list[Any]) -> list[Any]:
    return [line for line in logs if line["event"] == "BMC write" and line["log_level"] != "debug"]


async def test_a_write_is_one_line_with_who_what_why_and_the_answer() -> None:
    """Logins and reads that the write needs are part of it."""
    calls.set_reason(lambda: "Server s1 in Reserved")
    with structlog.testing.capture_logs() as logs:
        await connect(fake()).power_on(SYSTEM)

    assert lines(logs) == [
        {
            "event": "BMC write", "log_level": "info", "bmc": "bmc-1", "operation": "power_on", "system": SYSTEM,
            "why": "Server s1 in Reserved", "result": "ok", "error": None, "changes": 1, "seconds": 0.04,
        }
    ]  # fmt: skip


async def test_what_is_so_already_writes_no_line() -> None:
    """A machine that is on is not switched on, so nothing was written; debug says so."""
    with structlog.testing.capture_logs() as logs:
        await connect(fake(system(PowerState="On"))).power_on(SYSTEM)

    assert lines(logs) == []
    assert [line["changes"] for line in logs if line["event"] == "BMC write"] == [0]


async def test_reads_are_not_logged() -> None:
    """They come every few seconds."""
    with structlog.testing.capture_logs() as logs:
        await connect(fake()).systems()

    assert logs == []


async def test_a_write_that_fails_says_why() -> None:
    """The reason is that of the condition, the error the BMC's sentence."""
    bmc = fake()
    bmc.fault("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", answer(500))
    with structlog.testing.capture_logs() as logs, pytest.raises(BMCServerError):
        await connect(bmc).power_on(SYSTEM)

    (line,) = lines(logs)
    assert (line["log_level"], line["result"]) == ("warning", "InternalServerError")
    assert "10.0.0.1" in line["error"]


async def test_a_write_that_is_not_permitted_says_so() -> None:
    """A process that lost the lead sends nothing, and the line shows it."""

    def permit() -> None:
        raise NotLeader("another one leads")

    with structlog.testing.capture_logs() as logs, pytest.raises(NotLeader):
        await connect(fake(), permit=permit).power_on(SYSTEM)

    (line,) = lines(logs)
    assert (line["result"], line["changes"]) == ("NotLeader", 0)


async def test_secrets_are_not_logged() -> None:
    """Destinations of events hold a token, boot URIs may; only known arguments are logged."""
    bmc = connect(fake())
    with structlog.testing.capture_logs() as logs:
        for step in (
            bmc.subscribe("https://10.0.0.5/events/bmc-1/hunter2", "bmc-1"),
            cast("RedfishBMC", bmc).set_network_boot(  # the protocol of the capability has no such argument
                SYSTEM, BootTarget.UEFI_HTTP, http_boot_uri="http://10.0.0.5/hunter2"
            ),
        ):
            try:
                await step
            except BMCError:
                continue

    written = json.dumps(lines(logs), default=str)
    assert "set_network_boot" in written
    assert "UefiHttp" in written
    assert "hunter2" not in written
    assert PASSWORD not in written


async def test_requests_are_labelled_by_vendor_and_operation() -> None:
    """The vendor is known after the first answer that names the manufacturer."""
    registry = CollectorRegistry()
    bmc = connect(fake(system(Manufacturer="Dell Inc.")), registry)
    await bmc.system(SYSTEM)
    await bmc.power_on(SYSTEM)

    labels = {"vendor": "Dell", "operation": "power_on", "method": "POST", "result": "2xx"}
    assert registry.get_sample_value("metal_redfish_requests_total", labels) == 1
    labels = {"vendor": "Dell", "operation": "power_on", "result": "ok"}
    assert registry.get_sample_value("metal_bmc_writes_total", labels) == 1
    labels = {"vendor": "unknown", "operation": "system"}
    assert (registry.get_sample_value("metal_redfish_request_duration_seconds_count", labels) or 0) >= 1


async def test_open_sessions_are_counted() -> None:
    """One while logged in, none after the BMC was dropped."""
    registry = CollectorRegistry()
    pool = RedfishPool(lambda _: fake(), registry=registry)
    await pool.get(ACCESS).systems()
    assert registry.get_sample_value("metal_bmc_sessions") == 1
    await pool.drop("bmc-1")
    assert registry.get_sample_value("metal_bmc_sessions") == 0


def test_every_method_of_a_bmc_is_a_read_or_a_write() -> None:
    """A method that is added to the protocols is classified, or its writes would not be logged."""
    methods = {name for name in dir(BMC) if not name.startswith("_")}

    assert methods == READS | WRITES
    assert not READS & WRITES


@pytest.mark.parametrize(
    ("manufacturer", "label"),
    [("Dell Inc.", "Dell"), ("Hewlett Packard Enterprise", "HPE"), ("", "unknown"), ("Contoso", "other")],
)
def test_vendors_are_a_few_names(manufacturer: str, label: str) -> None:
    """What a BMC reports is any text, and each value of a label costs memory."""
    assert vendor_label(manufacturer) == label
