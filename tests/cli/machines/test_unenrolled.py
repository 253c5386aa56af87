"""The lines of `metalctl status` about BMCs and Endpoints without a Server."""

from typing import Any

from metal.api.bmc import BMC, BMCSpec, BMCStatus, Protocol
from metal.api.common import LocalRef
from metal.api.endpoint import Endpoint, EndpointStatus
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import Server, ServerSpec
from metal.cli.machines.unenrolled import unenrolled

SPEC = BMCSpec(protocol=Protocol(name="Redfish", port=443))


def _bmc(name: str, **status: Any) -> BMC:
    return BMC(metadata=ObjectMeta(name=name), spec=SPEC, status=BMCStatus(**status))


def _endpoint(name: str, **status: Any) -> Endpoint:
    return Endpoint(metadata=ObjectMeta(name=name), status=EndpointStatus(**status))


def test_enrolled_objects_are_not_listed() -> None:
    """A BMC with a Server, a ready Endpoint and an ignored Endpoint are not listed."""
    server = Server(metadata=ObjectMeta(name="s"), spec=ServerSpec(bmc_ref=LocalRef(name="a")))
    endpoints = [_endpoint("e", state="Ready"), _endpoint("f", state="Ignored")]
    assert unenrolled([_bmc("a", state="Enabled")], endpoints, [server]) == []


def test_each_is_named_with_its_reason() -> None:
    """The reason is the wait, else a message of a condition, else the state."""
    refused = Condition(type="Ready", status="False", message="credentials refused")
    fine = Condition(type="Reset", status="True", message="never shown")
    bmcs = [_bmc("b", conditions=(fine, refused)), _bmc("a", waiting_for="an address"), _bmc("c")]
    assert unenrolled(bmcs, [_endpoint("e", state="Error", waiting_for="no \x1b[31mlogin")], []) == [
        "3 BMCs have no server yet: kubectl get bmcs",
        "  a: an address",
        "  b: credentials refused",
        "  c: state Pending",
        "1 Endpoint has no BMC yet: kubectl get mep",
        "  e: no  [31mlogin",
    ]


def test_five_are_named_and_the_rest_is_counted() -> None:
    """At most five objects are named, so that many unreachable BMCs do not hide the table."""
    lines = unenrolled([_bmc(f"b{n:04}") for n in range(1000)], [], [])
    assert lines[0] == "1000 BMCs have no server yet: kubectl get bmcs"
    assert lines[5].startswith("  b0004: ")
    assert lines[6:] == ["  … and 995 more"]
