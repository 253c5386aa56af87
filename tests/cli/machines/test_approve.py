"""metalctl approve against an API without a manager."""

from pathlib import Path

import pytest

from tests.cli.inprocess import bench
from tests.cli.live import KINDS


@pytest.mark.behaviour("ServerMaintenance", "`metalctl approve` approves the maintenance of a claim.")
async def test_an_owner_approves_a_pending_maintenance(tmp_path: Path) -> None:
    """The reason is printed; a second approval says so; a claim without a pending maintenance is an error."""
    needed, approved, reason = (KINDS.key(f"maintenance-{word}") for word in ("needed", "approved", "reason"))
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web")
        nothing_pending = await b.run("approve", "web")
        marks = {"labels": {needed: "true"}, "annotations": {reason: "new DIMM"}}
        await b.live.client.patch(KINDS.claim, "web", {"metadata": marks}, "default")
        asked_for = await b.run("why", "claim/web")
        done, again = await b.run("approve", "web"), await b.run("approve", "web", "-o", "json")
        answered = await b.run("why", "claim/web")
        missing = await b.run("approve", "other")
    assert (nothing_pending.code, "claim web has no maintenance to approve" in nothing_pending.err) == (1, True)
    assert "Its server needs maintenance (new DIMM), not approved." in asked_for.out
    assert "metalctl approve web" in asked_for.out
    assert (done.code, done.out) == (0, "serverclaim/web approved: new DIMM\n"), done.err
    assert again.json["metadata"]["labels"] == {needed: "true", approved: "true"}
    assert "which is approved." in answered.out
    assert "metalctl approve" not in answered.out
    assert missing.code == 3


@pytest.mark.behaviour("Endpoint", "`metalctl approve bmc/NAME` approves the enrolment of a BMC.")
@pytest.mark.parametrize("value", ["pending", "serial-number"])
async def test_a_bmc_that_waits_is_approved(value: str, tmp_path: Path) -> None:
    """Once; another BMC needs no approval."""
    annotation = KINDS.key("approval")
    async with bench(tmp_path) as b:
        spec = {
            "access": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:01"}, "bmcSecretRef": {"name": "b1"},
            "protocol": {"name": "Redfish", "port": 443},
        }  # fmt: skip
        meta = {"name": "b1", "annotations": {annotation: value}}
        await b.live.client.create(KINDS.bmc, {"metadata": meta, "spec": spec})
        done, again = await b.run("approve", "bmc/b1"), await b.run("approve", "bmc/b1")
        found = await b.live.client.get(KINDS.bmc, "b1")
        missing = await b.run("approve", "bmc/other")
    assert (done.out, again.out) == ("bmc/b1 approved\n", "bmc/b1 needs no approval\n")
    assert found.metadata.annotations[annotation] == "approved"
    assert missing.code == 3
