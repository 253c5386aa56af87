"""metalctl why for BMCs and Endpoints: the state, what it waits for, and the way out."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from metal.api.bmc import BMC, BMCSpec, BMCStatus, Protocol
from metal.api.common import LocalRef
from metal.api.endpoint import Endpoint, EndpointSpec, EndpointStatus
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import Server, ServerSpec
from metal.cli.why.device import explain_bmc, explain_endpoint
from metal.controllers.shared.access.enrolment_policy import approval_text
from tests.cli.inprocess import bench
from tests.cli.live import KINDS

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SPEC = {"endpointRef": {"name": "b"}, "bmcSecretRef": {"name": "b"}, "protocol": {"name": "Redfish", "port": 443}}
META = ObjectMeta(name="b")


def _bmc(**status: Any) -> BMC:
    return BMC(
        metadata=META,
        spec=BMCSpec(protocol=Protocol(name="Redfish", port=443)),
        status=BMCStatus(ip="192.0.2.1", since=NOW - timedelta(minutes=5), **status),
    )


def test_a_bmc_that_waits_for_approval_names_the_command() -> None:
    """The message of the wait has it."""
    told = explain_bmc(_bmc(state="PendingApproval", waiting_for=approval_text("b")), [], [], NOW)
    assert told.doing[0] == "It is PendingApproval since 5m, address 192.0.2.1."
    assert "It has no Server." in told.doing
    assert "metalctl approve bmc/b" in told.advice


def test_a_duplicate_bmc_says_how_to_merge() -> None:
    """The one that is not in charge is to be deleted, or gets the Servers of the other."""
    text = "BMC a describes the same BMC and is in charge of it; nothing is sent to it for BMC b"
    condition = Condition(type="DuplicateBMC", status="True", reason="OtherBMCInCharge", message=text)
    told = explain_bmc(_bmc(state="Pending", waiting_for=text, conditions=(condition,)), [], [], NOW)
    assert any("metalctl delete bmc/b" in one and "spec.bmcRef.name" in one for one in told.advice)


def test_a_bmc_names_its_servers() -> None:
    """Only those that refer to it; a healthy one gets no other advice."""
    servers = [
        Server(metadata=ObjectMeta(name=f"{bmc}-system-0"), spec=ServerSpec(bmc_ref=LocalRef(name=bmc))) for bmc in "ab"
    ]
    ready = Condition(type="Ready", status="True", reason="Connected", message="the BMC answers: retry nothing")
    told = explain_bmc(_bmc(state="Enabled", conditions=(ready,)), servers, [], NOW)
    assert told.doing[1:] == ["Its Servers: b-system-0."]
    assert told.advice == ["For its Server: metalctl why server/b-system-0"]


def test_an_endpoint_says_what_failed_and_what_to_check() -> None:
    """A message without an instruction gets that of the table."""
    status = EndpointStatus(state="Error", waiting_for="the BMC to answer", since=NOW)
    endpoint = Endpoint(metadata=ObjectMeta(name="e"), spec=EndpointSpec(ip="192.0.2.2"), status=status)
    told = explain_endpoint(endpoint, [], NOW)
    assert "It waits for the BMC to answer." in told.doing
    assert any(one.startswith("check its power") for one in told.advice)


async def test_the_command_explains_bmcs_and_endpoints(tmp_path: Path) -> None:
    """Both are found by kind and name; an unknown kind is a usage error that names the known ones."""
    async with bench(tmp_path) as b:
        await b.live.client.create(KINDS.bmc, {"metadata": {"name": "b"}, "spec": SPEC})
        spec = {"macAddress": "02:00:00:00:00:01", "ip": "192.0.2.3"}
        await b.live.client.create(KINDS.endpoint, {"metadata": {"name": "b"}, "spec": spec})
        told = await b.run("why", "bmc/b", "endpoint/b")
        assert "It has no Server." in told.out
        assert "endpoint/b" in told.out
        assert "address 192.0.2.3" in told.out
        refused = await b.run("why", "switch/b")
        assert refused.code == 2
        assert "bmc/NAME or endpoint/NAME" in refused.err
