"""A machine's power, firmware, disk and faults, in virtual time."""

import asyncio
from dataclasses import replace

import pytest

from metal.sim.faults import NAMES
from metal.sim.machine.machine import RESETS, Busy
from tests.sim.site import OPTIONS, TENANT, Bench, probe_ignition

pytestmark = pytest.mark.looptime
ON = ("On", "ForceOn", "PushPowerButton")
LONG = 100.0


async def run_tenant(bench: Bench) -> None:
    """Boot a tenant's system from the network."""
    bench.server.ignition = TENANT
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant"]


@pytest.mark.parametrize("kind", ON)
async def test_power_comes_after_its_time(kind: str) -> None:
    """A machine that is powered on is PoweringOn first, and On after the delay."""
    bench = Bench()
    bench.machine.reset(kind)
    await asyncio.sleep(0.1)
    assert bench.machine.state.power == "PoweringOn"
    await asyncio.sleep(OPTIONS.power)
    assert bench.machine.state.power == "On"
    assert bench.powers == ["PoweringOn", "On"]


@pytest.mark.parametrize("kind", ["GracefulShutdown", "PushPowerButton", "ForceOff"])
async def test_a_running_system_goes_off(kind: str) -> None:
    """By shutdown or power cut the machine ends off, and its memory is lost."""
    bench = Bench()
    await run_tenant(bench)
    bench.machine.reset(kind)
    await asyncio.sleep(0.1)
    assert bench.machine.state.power == "PoweringOff"
    await asyncio.sleep(LONG)
    assert bench.machine.state.power == "Off"
    assert bench.machine.state.os is None


@pytest.mark.parametrize("kind", ["GracefulRestart", "ForceRestart", "PowerCycle"])
async def test_a_restart_boots_the_disk(kind: str) -> None:
    """Without an override the tenant's system boots from the disk, without network requests."""
    bench = Bench()
    await run_tenant(bench)
    fetched = len(bench.happened("fetch"))
    bench.machine.reset(kind)
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant", "disk"]
    assert len(bench.happened("fetch")) == fetched
    assert bench.machine.state.power == "On"


@pytest.mark.parametrize("kind", ["GracefulRestart", "ForceRestart", "PowerCycle", "Nmi"])
async def test_what_needs_power_is_refused_without(kind: str) -> None:
    """A machine that is off cannot be restarted."""
    with pytest.raises(Busy, match="off"):
        Bench().machine.reset(kind)


async def test_nmi_changes_nothing() -> None:
    """A non-maskable interrupt changes neither power nor system."""
    bench = Bench()
    await run_tenant(bench)
    bench.machine.reset("Nmi")
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant"]
    assert bench.machine.state.power == "On"


async def test_every_reset_is_noted() -> None:
    """Every requested reset is in the machine's history, including ignored ones."""
    bench = Bench()
    for kind in RESETS:
        bench.machine.reset("On")
        await asyncio.sleep(LONG)
        bench.machine.reset(kind)
        await asyncio.sleep(LONG)
    assert {entry.details["type"] for entry in bench.happened("reset")} == set(RESETS)


async def test_a_shutdown_under_way_is_overtaken_by_force() -> None:
    """ForceOff during a shutdown cuts the power at once; resets that start the machine are rejected meanwhile."""
    bench = Bench(replace(OPTIONS, shutdown=60.0))
    await run_tenant(bench)
    bench.machine.reset("GracefulShutdown")
    await asyncio.sleep(1)
    with pytest.raises(Busy, match="switching off"):
        bench.machine.reset("On")
    bench.machine.reset("ForceOff")
    await asyncio.sleep(OPTIONS.power + 0.1)
    assert bench.machine.state.power == "Off"


async def test_power_cut_during_a_boot_ends_the_boot() -> None:
    """Nothing is fetched after the power is off."""
    bench = Bench(ignition=TENANT)
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(OPTIONS.power + 15)
    bench.machine.reset("ForceOff")
    await asyncio.sleep(1)
    fetched = len(bench.happened("fetch"))
    await asyncio.sleep(LONG)
    assert fetched > 0
    assert len(bench.happened("fetch")) == fetched
    assert bench.systems == []


async def test_a_network_boot_fetches_what_the_script_says() -> None:
    """Lease, chainload script, own script, kernel, initial RAM disk and Ignition, from the machine's own address."""
    bench = Bench()
    await run_tenant(bench)
    identity = bench.machine.identity
    paths = [str(entry.details["path"]) for entry in bench.happened("fetch")]
    assert paths == ["/ipxe", f"/ipxe/{identity.uuid}", "/image", "/image", "/ignition/x"]
    assert bench.leases == [(identity.host_macs[0], identity.host_ip)]
    assert bench.server.sources == {identity.host_ip}
    assert bench.machine.state.os is not None
    assert bench.machine.state.os.hostname == "web-1"
    assert bench.machine.secrets == {"script-token"}
    assert not any("token" in str(entry) for entry in bench.happened())


async def test_an_override_for_one_boot_is_used_up() -> None:
    """The firmware clears `Once` with the boot that follows it."""
    bench = Bench()
    await run_tenant(bench)
    assert bench.machine.state.override.enabled == "Disabled"


async def test_a_continuous_override_stays() -> None:
    """`Continuous` leads to a network boot every time."""
    bench = Bench(ignition=TENANT)
    bench.netboot()
    bench.machine.state.override.enabled = "Continuous"
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    bench.machine.reset("ForceRestart")
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant", "tenant"]


async def test_the_probe_reports_with_its_token() -> None:
    """An Ignition that starts metalprobe makes the machine report to the URL and with the token that it names."""
    bench = Bench()
    bench.server.ignition = probe_ignition(bench.machine.identity.uuid)
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["probe"]
    ((authorization, body),) = bench.server.reports
    assert authorization == "Bearer report-token"
    assert body["systemUUID"] == bench.machine.identity.uuid
    assert body["data"]["networkInterfaces"][0]["macAddress"] == bench.machine.identity.host_macs[0]
    assert bench.machine.state.disk.marker == "", "the probe leaves no traces"
    assert "report-token" in bench.machine.secrets


async def test_the_probe_tries_again_until_it_is_heard() -> None:
    """A registry that is unreachable or answers 5xx is retried; a refusal is final."""
    bench = Bench(failures={"register": 3})
    bench.server.ignition = probe_ignition(bench.machine.identity.uuid)
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert [entry.details["status"] for entry in bench.happened("report")] == [0, 0, 0, 200]
    refused = Bench(refuse={"register": 403})
    refused.server.ignition = probe_ignition(refused.machine.identity.uuid)
    refused.netboot()
    refused.machine.reset("On")
    await asyncio.sleep(LONG)
    assert [entry.details["status"] for entry in refused.happened("report")] == [403]


async def test_an_image_without_ignition_runs_as_it_is() -> None:
    """Without an Ignition URL in the kernel arguments it is a tenant's system without Ignition."""
    bench = Bench()
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant"]
    assert bench.machine.state.os is not None
    assert bench.machine.state.os.ignition == ""
    assert bench.machine.state.disk.marker == bench.machine.state.os.image


@pytest.mark.parametrize(("what", "status"), [("ipxe", 404), ("ipxe", 403), ("image", 403), ("image", 503)])
async def test_a_refused_network_boot_falls_through_to_the_disk(what: str, status: int) -> None:
    """As real firmware does; here the disk is empty."""
    bench = Bench(ignition=TENANT, refuse={what: status})
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["none"]
    assert bench.machine.state.power == "On"


async def test_a_boot_server_that_comes_back_is_found() -> None:
    """One request that failed does not end the boot."""
    bench = Bench(failures={"ipxe": 1, "image": 2})
    await run_tenant(bench)


async def test_ignition_waits_for_a_server_that_is_not_ready() -> None:
    """Ignition retries after 5xx and time-outs without limit, so that 503 means later."""
    bench = Bench(ignition=TENANT, refuse={"ignition": 503})
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == []
    bench.server.refuse.clear()
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant"]


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_refused_ignition_is_the_end(status: int) -> None:
    """Any status below 500 other than 200 ends in the emergency shell: nothing is installed or reported."""
    bench = Bench(ignition=TENANT, refuse={"ignition": status})
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["emergency"]
    assert bench.machine.state.disk.marker == ""


@pytest.mark.parametrize("broken", [{}, {"ignition": {"version": "1.0.0"}}, [], "x"])
async def test_a_broken_ignition_is_the_end(broken: object) -> None:
    """An invalid Ignition config stops the system in its emergency shell."""
    bench = Bench()
    bench.server.ignition = broken  # type: ignore[assignment]  # broken is the point
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["emergency"]


async def test_stale_power_is_seconds_late() -> None:
    """The BMC reports an earlier state than the machine has."""
    bench = Bench()
    bench.machine.faults.stale_power = True
    bench.machine.reset("On")
    await asyncio.sleep(5)
    assert (bench.machine.state.power, bench.machine.reported_power) == ("On", "Off")
    await asyncio.sleep(10)
    assert bench.machine.reported_power == "On"


async def test_a_lying_bmc_says_what_was_asked_for() -> None:
    """It accepts the reset, reports the requested state, and the machine does nothing."""
    bench = Bench()
    bench.machine.faults.lies_power = True
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert (bench.machine.state.power, bench.machine.reported_power) == ("Off", "On")
    bench.machine.reset("ForceOff")
    assert bench.machine.reported_power == "Off"


async def test_a_deaf_machine_tells_the_truth() -> None:
    """It accepts the reset and does nothing, and reports the true power state."""
    bench = Bench()
    bench.machine.faults.ignores_reset = True
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert (bench.machine.state.power, bench.machine.reported_power) == ("Off", "Off")


async def test_a_stubborn_system_goes_off_by_force_only() -> None:
    """A system that ignores the power button and restarts runs until the power is cut."""
    bench = Bench()
    await run_tenant(bench)
    bench.machine.faults.ignores_graceful = True
    for kind in ("GracefulShutdown", "PushPowerButton", "GracefulRestart"):
        bench.machine.reset(kind)
        await asyncio.sleep(LONG)
        assert bench.machine.state.os is not None
    bench.machine.reset("ForceOff")
    await asyncio.sleep(LONG)
    assert bench.machine.state.power == "Off"


async def test_ignores_once_comes_back_to_the_network() -> None:
    """A BMC that keeps `Once` makes the next boot a network boot as well, which re-images tenants."""
    bench = Bench()
    bench.machine.faults.ignores_once = True
    await run_tenant(bench)
    bench.machine.reset("ForceRestart")
    await asyncio.sleep(LONG)
    assert bench.systems == ["tenant", "tenant"]


async def test_boots_disk_never_asks_the_network() -> None:
    """The disk is booted in spite of the override."""
    bench = Bench(ignition=TENANT)
    bench.machine.faults.boots_disk = True
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(LONG)
    assert bench.systems == ["none"]
    assert bench.happened("fetch") == []


async def test_never_reports_and_reports_late() -> None:
    """One never reports, the other only after its delay."""
    for fault, heard in (("never_reports", 0), ("reports_late", 1)):
        bench = Bench()
        bench.machine.faults.switch(fault)
        bench.server.ignition = probe_ignition(bench.machine.identity.uuid)
        bench.netboot()
        bench.machine.reset("On")
        await asyncio.sleep(OPTIONS.power + OPTIONS.boot + 5)
        assert bench.server.reports == []
        await asyncio.sleep(OPTIONS.late + 5)
        assert len(bench.server.reports) == heard


async def test_dies_after_script_hangs_until_power_is_cut() -> None:
    """The machine fetches its script and then nothing more."""
    bench = Bench(ignition=TENANT)
    bench.machine.faults.dies_after_script = True
    bench.netboot()
    bench.machine.reset("On")
    await asyncio.sleep(1000)
    assert "/image" not in [entry.details["path"] for entry in bench.happened("fetch")]
    assert bench.machine.state.power == "On"
    bench.machine.reset("ForceOff")
    await asyncio.sleep(LONG)
    assert bench.machine.state.power == "Off"


async def test_second_fetch_asks_for_the_script_again() -> None:
    """The script is requested once more after the Ignition was fetched."""
    bench = Bench()
    bench.machine.faults.second_fetch = True
    await run_tenant(bench)
    paths = [str(entry.details["path"]) for entry in bench.happened("fetch")]
    assert paths[-2:] == ["/ignition/x", f"/ipxe/{bench.machine.identity.uuid}"]


def test_faults_are_switched_by_name() -> None:
    """An unknown fault is rejected with a list of the known ones."""
    bench = Bench()
    bench.machine.faults.switch("dead")
    assert bench.machine.faults.active == ("dead",)
    bench.machine.faults.switch("dead", False)
    assert repr(bench.machine.faults) == "<Faults none>"
    with pytest.raises(ValueError, match=f"'ded'.*{NAMES[-1]}"):
        bench.machine.faults.switch("ded")
