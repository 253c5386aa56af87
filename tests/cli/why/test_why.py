"""metalctl why: it knows every wait and reason of the controllers, and repeats the way out that a message names."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal import controllers
from metal.api.boot_window import BootWindow
from metal.api.claim import ServerClaim, ServerClaimSpec, ServerClaimStatus
from metal.api.common import LabelSelector, LabelSelectorRequirement, LocalRef, ObjectRef, Taint
from metal.api.meta import Condition, ObjectMeta
from metal.api.server import FailingOperation, Failure, Server, ServerSpec, ServerStatus, State, Wait
from metal.api.tenancy import ClaimBoot, Tenancy
from metal.bmc import errors as bmc_errors
from metal.bmc.errors import BMCError
from metal.cli.objects.events import EventSummary
from metal.cli.why import claim as of_claim
from metal.cli.why import server as of_server
from metal.cli.why.advice import CLAIMS, FAILURES, MISMATCHES, WAITS
from metal.cli.why.remedies import remedies
from metal.controllers.claim.reasons import ClaimReason
from metal.controllers.server.bmc.failing import CORRECTABLE
from metal.controllers.server.reasons import ERASED_BY_RETRY, Reason, WaitFor, of_bmc
from metal.controllers.server.system_check import WrongSystem
from tests.cli.inprocess import bench
from tests.cli.live import KINDS

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
HOUSE = Path(controllers.__file__).parent


def calls(files: list[Path], name: str) -> Iterator[tuple[ast.Call, str]]:
    """Return every call of a function or method of this name, and its file."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and name in (getattr(node.func, "attr", ""), getattr(node.func, "id", "")):
                yield node, file.name


def literals(files: list[Path], name: str, at: int = 0) -> set[str]:
    """Return the argument at this position of each such call, where it is a literal."""
    found = (call.args[at] for call, _ in calls(files, name) if len(call.args) > at)
    return {node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)}


SERVER = sorted((HOUSE / "server").rglob("*.py"))
CLAIM = sorted((HOUSE / "claim").glob("*.py"))


def test_every_wait_has_its_sentence() -> None:
    """Every name that status.wait.for can have is known; the controllers write no other."""
    assert set(WaitFor) <= set(WAITS)
    assert not literals(SERVER, "wait")


def test_every_failure_has_its_sentence() -> None:
    """The reasons of the Server controller, of BMC errors, and of missing objects are known."""
    kinds = [getattr(bmc_errors, name) for name in bmc_errors.__all__] + [WrongSystem]
    lasting = {_lasting(kind) for kind in kinds}
    missing = {
        of_bmc(reason)
        for reason in literals(
            [HOUSE / "shared" / "access" / "bmc_endpoint.py", HOUSE / "server" / "bmc" / "connect.py"], "Problem"
        )
    }
    assert set(Reason) | lasting | missing <= set(FAILURES)


def test_a_failure_is_named_in_a_way_that_these_tests_can_see() -> None:
    """A reason is a constant; those that come from a BMC error are enumerated."""
    reasons = [(file, ast.unparse(call.args[0])) for call, file in calls(SERVER, "fail")]
    assert sorted((file, reason) for file, reason in reasons if not reason.startswith("Reason.")) == [
        ("bmc_errors.py", "of_bmc(known.reason)"),
        ("bmc_errors.py", "reason"),
        ("power.py", "of_bmc(known.reason)"),
    ]


def test_every_reason_of_a_claim_has_its_sentence() -> None:
    """The reasons of mismatches and of conditions with status False are known."""
    assert literals(CLAIM, "Mismatch") <= set(MISMATCHES)
    said = {
        call.args[2].value
        for call, _ in calls(CLAIM, "report")
        if isinstance(call.args[1], ast.Constant)
        and call.args[1].value is False
        and isinstance(call.args[2], ast.Constant)
    }
    assert said | set(ClaimReason) <= set(CLAIMS)


def _lasting(kind: type[BMCError]) -> str:
    hopeless = kind.permanent and not issubclass(kind, CORRECTABLE)
    return kind.reason if hopeless else of_bmc(kind.reason)


@given(
    st.sampled_from([*WAITS.values(), *FAILURES.values(), *MISMATCHES.values(), *CLAIMS.values()]), st.text(max_size=20)
)
def test_advice_can_be_given_for_any_name(advice: Any, name: str) -> None:
    """Each advice is a sentence without a full stop and without an unfilled placeholder."""
    assert advice.meaning
    assert not advice.meaning.endswith(".")
    assert "{" not in advice.way_out.format(name=name, claim=name).replace(name, "")


def server(name: str = "s1", spec: dict[str, Any] | None = None, **status: Any) -> Server:
    labels = (spec or {}).pop("labels", {})
    return Server(
        metadata=ObjectMeta(name=name, uid=name, labels=labels),
        spec=ServerSpec(system_uuid="u", **(spec or {})),
        status=ServerStatus(**{"power_state": "Off", "state": "Available", **status}),
    )


def text(explanation: Any) -> str:
    return "\n".join(explanation.lines(NOW))


def minutes(count: int) -> datetime:
    return NOW + timedelta(minutes=count)


def test_a_wait_is_explained_with_its_deadline_and_the_way_out() -> None:
    """The explanation has the wait, its start and deadline, its meaning, the progress of the boot and the advice."""
    window = BootWindow(
        id="x", purpose="Discovery", image="probe:1", config_ref=ObjectRef(namespace="n", name="c"),
        opened_at=minutes(-5), expires_at=minutes(25), script_served_at=minutes(-4), client_address="192.0.2.7",
        phase="ScriptServed", method="IPXE", trust="Lease", minimum_trust="Lease",
    )  # fmt: skip
    found = server(
        state="Discovery", since=minutes(-9), waiting_for="the machine to fetch its Ignition", boot_attempts=2,
        wait=Wait(for_="ProbeReport", since=minutes(-5), until=minutes(25)), boot_window=window,
    )  # fmt: skip
    recorded = [EventSummary("Warning", "NetworkBootFailed", "network boot 2 failed: it went off", 1, minutes(-6))]
    explanation = of_server.explain(found, recorded, KINDS, NOW)
    assert text(explanation).splitlines() == [
        "server/s1",
        "  It is Discovery since 9m, power Off.",
        "  It waits for the machine to fetch its Ignition, since 5m, until 12:25:00 UTC (in 25m0s).",
        "  Meaning: the machine boots the probe image over the network; the probe reports the hardware.",
        "  Tried:",
        "    2 consecutive network boots failed.",
        "    A network boot (Discovery, IPXE, probe:1, minimum trust Lease) started 5m ago, the script was served to "
        "192.0.2.7 with trust Lease 4m ago; its phase is ScriptServed.",
        "  Events:",
        "    6m ago: NetworkBootFailed: network boot 2 failed: it went off",
        "  What you can do:",
        "    watch the boot: metalctl console s1. If no script is requested, check that DHCP directs it to iPXE",
    ]
    assert explanation.as_json()["wait"]["until"] == "2026-01-01T12:25:00Z"


@pytest.mark.parametrize("reason", sorted(ERASED_BY_RETRY))
def test_a_retry_that_erases_says_so(reason: str) -> None:
    """The command is not offered to try something again when all that it does is to erase the drives."""
    failure = Failure(state="Cleanup", reason=reason, message="it failed. Repair or remove the drive")
    explanation = of_server.explain(server(state="Error", failure=failure), [], KINDS, NOW)
    assert "To erase the data: metalctl retry s1" in explanation.advice
    assert "try again" not in text(explanation)


def test_the_first_inventory_of_a_server_is_not_mentioned() -> None:
    """That there is nothing to compare the inventory with is the normal state of a new server."""
    first = Condition(type="HardwareChanged", status="False", reason="FirstInventory", message="nothing to compare")
    other = Condition(type="Discovered", status="False", reason="Pending", message="no report")
    found = text(of_server.explain(server(conditions=(first, other)), [], KINDS, NOW))
    assert ("HardwareChanged" in found, "Discovered is False (Pending)" in found) == (False, True)


def test_a_condition_with_the_text_of_the_failure_is_not_repeated() -> None:
    """status.waitingFor has the first sentence of a failure only; conditions with its message are still left out."""
    message = "two reports differ. Check which machine answered"
    failure = Failure(state="Discovery", reason="IdentityMismatch", message=message)
    condition = Condition(type="Discovered", status="False", reason="IdentityMismatch", message=message)
    found = server(state="Error", failure=failure, conditions=(condition,), waiting_for="IdentityMismatch: two")
    assert text(of_server.explain(found, [], KINDS, NOW)).count(message) == 1


def test_a_failure_is_explained_once_with_a_way_out() -> None:
    """The explanation has the interrupted state, the reason and the advice of the tables."""
    failure = Failure(state="Reserved", reason="BMCAuthenticationFailed", message="the BMC refused the password")
    found = server(state="Error", failure=failure, wait=Wait(for_="Repair"), waiting_for="BMCAuthenticationFailed: …")
    explanation = of_server.explain(found, [], KINDS, NOW)
    assert text(explanation).count("the BMC refused the password") == 1
    assert "It failed in Reserved, BMCAuthenticationFailed" in text(explanation)
    assert explanation.advice[0] == "correct the BMCSecret"
    assert explanation.advice[1].endswith("metalctl retry s1")


def _power_on(message: str) -> FailingOperation:
    return FailingOperation(
        operation="power-on", reason="InternalServerError", message=message, count=4, first_failed_at=minutes(-7),
        last_failed_at=minutes(-1), retry_at=minutes(1),
    )  # fmt: skip


def test_operations_on_the_bmc_that_fail_are_listed_with_their_next_attempt() -> None:
    """Each has its count, its times and its message, which is printed once; JSON has all fields."""
    operational = Condition(
        type="BMCOperational", status="False", reason="InternalServerError", message="power-on failed: it is broken"
    )
    led = FailingOperation(operation="set-indicator-led", reason="Timeout", message="no answer.", count=1)
    found = server(
        state="Reserved", conditions=(operational,), failing_operations=(_power_on("it is broken"), led),
        waiting_for="power-on to succeed: it is broken", wait=Wait(for_="BMCOperation", since=minutes(-7)),
    )  # fmt: skip
    explanation = of_server.explain(found, [], KINDS, NOW)
    assert explanation.tried == [
        "The operation power-on failed 4 times, first 7m ago, last 60s ago (InternalServerError); it is not requested "
        "again before 12:01:00 UTC (in 1m0s).",
        "The operation set-indicator-led failed once, first at an unknown time, last at an unknown time (Timeout): "
        "no answer.",
    ]
    assert text(explanation).count("it is broken") == 1
    listed = explanation.as_json()["failingOperations"]
    assert [(one["operation"], one["count"], one["retryAt"]) for one in listed] == [
        ("power-on", 4, "2026-01-01T12:01:00Z"), ("set-indicator-led", 1, None),
    ]  # fmt: skip


def test_a_server_in_error_names_the_operation_that_failed() -> None:
    """The failure has the message, so that the list of attempts does not repeat it; JSON names the operation."""
    failure = Failure(
        state="Reserved", operation="power-on", reason="BMCInternalServerError", message="power-on failed: it is broken"
    )
    found = server(
        state="Error", failure=failure, failing_operations=(_power_on("it is broken"),), wait=Wait(for_="Repair"),
        waiting_for="BMCInternalServerError: power-on failed: it is broken",
    )  # fmt: skip
    explanation = of_server.explain(found, [], KINDS, NOW)
    assert text(explanation).count("it is broken") == 1
    assert "The operation power-on failed 4 times" in text(explanation)
    assert explanation.as_json()["failure"]["operation"] == "power-on"


@pytest.mark.parametrize(
    ("waiting_for", "way_out"),
    [
        (
            "the boot configuration ns/s1 to be ready: no probe image is configured: set probeImage in the "
            "configuration of the control plane",
            "set probeImage in the configuration of the control plane",
        ),
        (
            "the boot configuration ns/s1 to be ready: spec.image is empty: name the OCI image that is to be booted",
            "name the OCI image that is to be booted",
        ),
    ],
)
def test_the_advice_repeats_the_way_out_that_the_cause_names(waiting_for: str, way_out: str) -> None:
    """A wait whose cause names the way out has no other advice."""
    found = server(state="Discovery", waiting_for=waiting_for, wait=Wait(for_="BootConfiguration", since=NOW))
    assert of_server.explain(found, [], KINDS, NOW).advice == [way_out]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", []),
        ("the BMC to answer: connection refused", []),
        ("power On (as the claim requests)", []),
        ("the BMC to answer: Name or service not known", []),
        ("the BMC to answer: Connect call failed", []),
        (
            "to go on: kubectl annotate servers s1 a/operation=retry",
            ["to go on: kubectl annotate servers s1 a/operation=retry"],
        ),
        (
            "a drive failed. Repair or remove the drive; to accept it: kubectl annotate",
            ["Repair or remove the drive", "to accept it: kubectl annotate"],
        ),
        (
            "image changed. To have it booted, once, set spec.bootGeneration to 2",
            ["To have it booted, once, set spec.bootGeneration to 2"],
        ),
    ],
)
def test_instructions_are_found_in_a_message(message: str, expected: list[str]) -> None:
    """An instruction begins with an imperative, or with "to", and ends with its clause."""
    assert remedies(message) == expected


@given(st.text())
def test_any_message_has_a_list_of_instructions(message: str) -> None:
    """Arbitrary text never fails, and no instruction is empty or repeated."""
    found = remedies(message)
    assert all(found)
    assert len(set(found)) == len(found)


def test_a_server_that_is_not_managed_says_so() -> None:
    """An ignored, a parked, a cordoned and a new server each have their sentence and advice."""
    ignored = server()
    ignored = Server(metadata=ObjectMeta(name="s1", annotations={KINDS.key("operation"): "ignore"}), spec=ignored.spec)
    assert "It is not managed" in text(of_server.explain(ignored, [], KINDS, NOW))
    assert "Check that a manager is running" in text(of_server.explain(server(state=""), [], KINDS, NOW))
    assert "metalctl unpark s1" in text(of_server.explain(server(state="Parked"), [], KINDS, NOW))
    assert "metalctl uncordon s1" in text(of_server.explain(server(spec={"unclaimable": True}), [], KINDS, NOW))
    assert "can be claimed" in text(of_server.explain(server(), [], KINDS, NOW))


@given(
    st.sampled_from([*State, ""]), st.sampled_from([*WAITS, "Unheard", ""]), st.sampled_from([*FAILURES, "Unheard"]),
    st.booleans(),
)  # fmt: skip
def test_every_server_has_an_explanation(state: str, wait: str, failure: str, timed: bool) -> None:
    """Every state, wait and failure is explained, also unknown ones; the JSON output has the same subject."""
    moment = NOW if timed else None
    found = server(
        state=state, since=moment, waiting_for="x" if wait else "", failure=Failure(reason=failure, message="m"),
        wait=Wait(for_=wait, since=moment, until=moment) if wait else None,
    )  # fmt: skip
    explanation = of_server.explain(found, [], KINDS, NOW)
    assert text(explanation).startswith("server/s1\n  It is ")
    assert explanation.as_json()["subject"] == "server/s1"


def claim(**spec: Any) -> ServerClaim:
    bound = Condition(type="Bound", status="False", reason="NoneFits", message="none of 4 servers fits")
    status = ServerClaimStatus(phase="Unbound", waiting_for="a server that fits", conditions=(bound,))
    return ServerClaim(
        metadata=ObjectMeta(name="web", namespace="default"), spec=ServerClaimSpec(**spec), status=status
    )


def test_a_claim_without_server_counts_every_reason() -> None:
    """Each reason has a number of servers, an example and an advice; each requirement counts its servers."""
    zone = LabelSelectorRequirement(key="zone", operator="In", values=("a", "b"))
    unbound = claim(server_selector=LabelSelector(match_labels={"rack": "r7"}, match_expressions=(zone,)))
    labels = {"rack": "r7", "zone": "a"}
    servers = [
        server("s1", {"labels": {"rack": "r8", "zone": "a"}}), server("s2", {"labels": {"rack": "r9"}}),
        server("s3", {"labels": labels, "unclaimable": True}),
        server("s4", {"labels": labels, "taints": (Taint(key="gpu"),)}),
        server("s5", {"labels": labels}, state="Discovery"),
    ]  # fmt: skip
    explanation = of_claim.explain(unbound, servers, [], KINDS, NOW)
    shown = text(explanation)
    assert "metalctl release other -n team" in of_claim.explain(claim(), [_held()], [], KINDS, NOW).advice[0]
    assert "2 servers do not fit: labels or name do not match (NoMatch), such as s1." in shown
    assert "1 server does not fit: marked unclaimable (Cordoned), such as s3." in shown
    assert "1 server does not fit: taint gpu is not tolerated (Tainted), such as s4." in shown
    assert "The requirement rack in (r7) of its selector matches 3 servers of 5." in shown
    assert "The requirement zone in (a,b) of its selector matches 4 servers of 5." in shown
    assert "metalctl uncordon s3" in explanation.advice
    assert "see what a server waits for: metalctl why server/s5" in explanation.advice
    assert sum(entry["count"] for entry in explanation.as_json()["servers"]) == 5


def _held() -> Server:
    return server(spec={"server_claim_ref": ObjectRef(namespace="team", name="other")}, state="Reserved")


def test_a_claim_that_names_a_server_is_about_that_one() -> None:
    """Only the named server is explained; a missing one is reported."""
    servers = [server("s1", {"unclaimable": True}), server("s2")]
    shown = text(of_claim.explain(claim(server_ref=LocalRef(name="s1")), servers, [], KINDS, NOW))
    assert "1 server does not fit: marked unclaimable (Cordoned), such as s1." in shown
    assert "s2" not in shown
    assert "There is no server s9." in text(
        of_claim.explain(claim(server_ref=LocalRef(name="s9")), servers, [], KINDS, NOW)
    )


def test_a_claim_that_requests_another_boot_names_how_to_withdraw_it() -> None:
    """A claim whose image changed names how to request a boot; the JSON output has both generations."""
    asks = _booted("Ready", "NetworkBootRequested", "waits for power Off", asked=2)
    changed = _booted("Current", "ChangedAfterBoot", "set spec.bootGeneration to 2", asked=1)
    assert "set spec.bootGeneration of c1 to its status.bootGeneration" in asks.advice[0]
    assert "waits for power Off" in text(asks)
    assert asks.facts["bootGeneration"] == {"asked": 2, "answered": 1}
    assert changed.advice[0] == "set spec.bootGeneration to 2"
    assert "Its last network boot was for spec.bootGeneration 1" in text(changed)


def _booted(type: str, reason: str, message: str, *, asked: int) -> Any:
    """Return the explanation of a bound claim that has booted for generation 1."""
    said = (Condition(type=type, status="False", reason=reason, message=message),)
    status = ServerClaimStatus(phase="Bound", boot_generation=1, conditions=said)
    obj = ServerClaim(metadata=ObjectMeta(name="c1"), spec=ServerClaimSpec(boot_generation=asked), status=status)
    return of_claim.explain(obj, [], [], KINDS, NOW)


def test_a_server_whose_claim_requests_another_boot_says_so() -> None:
    """The request appears once the Server has recorded it."""
    boot = ClaimBoot(claim_uid="u", image="os:1", booted_at=NOW, boot_generation=1, requested_generation=2)
    shown = text(of_server.explain(server(state="Reserved", tenancy=Tenancy(boot=boot)), [], KINDS, NOW))
    assert "requests another network boot (bootGeneration 2)" in shown
    assert "os:1 booted" in shown


def test_a_server_that_fits_is_counted_too() -> None:
    """A server that fits is named while the manager has not bound it yet."""
    assert "1 server fits, such as s1" in text(of_claim.explain(claim(), [server()], [], KINDS, NOW))


@pytest.mark.parametrize("word", ["server", "servers/", "switch/x", "/x"])
async def test_why_takes_a_server_or_a_claim(word: str, tmp_path: Path) -> None:
    """Any other argument is a usage error."""
    async with bench(tmp_path) as b:
        wrong = await b.run("why", word)
    assert (wrong.code, "write server/NAME, claim/NAME, bmc/NAME or endpoint/NAME" in wrong.err) == (2, True)


async def test_why_of_a_bound_claim_explains_its_server(tmp_path: Path) -> None:
    """Both outputs explain the claim and its server, with the Events of both."""
    async with bench(tmp_path) as b:
        await b.claimed("s1", "web", waitingFor="power On", wait={"for": "PowerOn"})
        await b.event("s1", "ForcedOff", "power is cut")
        text_output, json_output = await b.run("why", "claim/web"), await b.run("why", "claim/web", "-o", "json")
        missing = await b.run("why", "server/s9")
    assert text_output.code == 0, text_output.err
    assert "claim/web\n  It is Bound." in text_output.out
    assert "server/s1\n  It is Reserved" in text_output.out
    assert "ForcedOff: power is cut" in text_output.out
    (explanation,) = json_output.json
    assert explanation["parts"][0]["wait"]["name"] == "PowerOn"
    assert explanation["parts"][0]["events"][0]["reason"] == "ForcedOff"
    assert missing.code == 3
