"""Transitions of the boot window, alone and in every order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from metal.api.boot_window import BootWindow, Phase, Purpose, Trust
from metal.api.common import ObjectRef
from metal.machine import boot_window as windows
from metal.machine.boot_window import NotConfirmed, Refused, TrustTooLow

NOW = datetime(2026, 1, 1, tzinfo=UTC)
C, OTHER = "10.0.0.7", "10.0.0.8"


def opened(purpose: str = "Discovery", minimum: str = "") -> BootWindow:
    ref = ObjectRef(namespace="ns", name="sbc")
    expires = NOW + timedelta(minutes=30)
    return BootWindow(
        id="b1", purpose=purpose, config_ref=ref, opened_at=NOW, expires_at=expires, minimum_trust=minimum
    )


def served(purpose: str = "Discovery", token: str = "script", trust: Trust = Trust.LEASE) -> BootWindow:
    return windows.serve_script(opened(purpose), NOW, token=token, client=C, lease_known=False, trust=trust)


@pytest.mark.parametrize(
    ("trust", "enough"),
    [
        ("OutOfBand", {"", "FirstRequest", "Lease", "OutOfBand"}),
        ("Lease", {"", "FirstRequest", "Lease"}),
        ("FirstRequest", {"", "FirstRequest"}),
        ("", {""}),
    ],
)
def test_a_trust_reaches_what_is_not_above_it(trust: str, enough: set[str]) -> None:
    """An unknown trust reaches no minimum, and an unknown minimum is reached by none."""
    minimums = ("", *Trust, "Attested")
    assert {str(one) for one in minimums if windows.reaches(trust, one)} == enough
    assert windows.higher(trust, "OutOfBand") == windows.higher("OutOfBand", trust) == "OutOfBand"


@pytest.mark.parametrize("minimum", ["Lease", "OutOfBand"])
def test_below_the_minimum_there_is_no_script_and_no_contest(minimum: str) -> None:
    """Nor does a request below it stop a boot that was served with enough trust."""
    with pytest.raises(TrustTooLow):
        windows.serve_script(opened("Claim", minimum), NOW, token="t", client=OTHER, lease_known=False)
    window = msgspec.structs.replace(served("Claim", trust=Trust.OUT_OF_BAND), minimum_trust=minimum)
    with pytest.raises(TrustTooLow):
        windows.serve_script(window, NOW, token="t", client=OTHER, lease_known=False)
    done = windows.serve_ignition(window, NOW, token="script", report_token="", client=C)
    with pytest.raises(TrustTooLow):
        windows.serve_script(done, NOW, token="t", client=OTHER, lease_known=False)


def test_a_report_below_the_minimum_is_not_believed() -> None:
    """Also when its token is the right one."""
    window = windows.serve_ignition(served("Sanitization"), NOW, token="script", report_token="r", client=C)
    assert windows.check_report_token(window, NOW, "r") == window
    with pytest.raises(TrustTooLow):
        windows.accept_report(msgspec.structs.replace(window, minimum_trust="OutOfBand"), NOW, token="r")


def test_an_ignition_that_nobody_proves_waits_until_the_boot_was_not_contested() -> None:
    """The time counts from the script; a lease of the address that received it ends the wait."""
    window, race = served("Claim", trust=Trust.FIRST_REQUEST), timedelta(minutes=2)

    def serve(now: datetime, *, leased: bool = False) -> BootWindow:
        return windows.serve_ignition(
            window, now, token="script", report_token="", client=C, leased=leased, contest_period=race
        )

    with pytest.raises(NotConfirmed) as refused:
        serve(NOW + timedelta(seconds=30))
    assert refused.value.retry_after == 90
    assert serve(NOW + race).trust == "FirstRequest"
    assert serve(NOW, leased=True).trust == "Lease"


def test_a_discovery_goes_from_script_to_ignition_to_report() -> None:
    """Each step uses one token and issues the next."""
    window = windows.serve_ignition(served(), NOW, token="script", report_token="report", client=C)
    assert (window.phase, window.token_digest) == (Phase.IGNITION_SERVED, "")
    done = windows.accept_report(window, NOW, token="report", receipt="r")
    assert (done.phase, done.report_token_digest, done.reported_at, done.receipt) == (Phase.SUCCEEDED, "", NOW, "r")


def test_a_claim_has_succeeded_with_its_ignition() -> None:
    """A claim's boot succeeds when the Ignition is served; no report and no report token follow."""
    window = windows.serve_ignition(served("Claim"), NOW, token="script", report_token="report", client=C)
    assert (window.phase, window.report_token_digest) == (Phase.SUCCEEDED, "")
    with pytest.raises(Refused):
        windows.accept_report(window, NOW, token="report")


def test_a_repeated_report_is_known_by_token_and_content_together() -> None:
    """A repeat needs the same token and the same content, before the window expires."""
    receipt = windows.report_receipt("report", b"content")
    window = windows.serve_ignition(served(), NOW, token="script", report_token="report", client=C)
    assert not windows.is_repeat(window, NOW, receipt)
    done = windows.accept_report(window, NOW, token="report", receipt=receipt)
    assert windows.is_repeat(done, NOW, receipt)
    assert windows.is_repeat(windows.close(done), NOW, receipt)
    assert not windows.is_repeat(done, NOW, windows.report_receipt("report", b"other"))
    assert not windows.is_repeat(done, NOW, windows.report_receipt("other", b"content"))
    assert not windows.is_repeat(done, done.expires_at, receipt)
    assert not windows.is_repeat(None, NOW, receipt)


def test_the_token_of_the_image_is_valid_as_long_as_the_boot() -> None:
    """After the Ignition and after the success, until the window expires; not once the boot is closed or contested."""
    window = windows.serve_script(
        opened(), NOW, token="script", image_token="image", client=C, lease_known=True, trust=Trust.LEASE
    )
    fetched = windows.serve_ignition(window, NOW, token="script", report_token="report", client=C)
    done = windows.accept_report(fetched, NOW, token="report")
    for valid in (window, fetched, done, windows.succeed(window)):
        assert windows.check_image_token(valid, NOW, "image") is valid
        for wrong in ("report", "other", ""):
            with pytest.raises(Refused):
                windows.check_image_token(valid, NOW, wrong)
        with pytest.raises(Refused):
            windows.check_image_token(valid, valid.expires_at, "image")
    assert windows.check_image_token(window, NOW, "script") is window
    for over in (opened(), None, windows.close(done), windows.contest(done), windows.close(window)):
        for token in ("image", "script", ""):
            with pytest.raises(Refused):
                windows.check_image_token(over, NOW, token)


def test_the_token_of_the_image_gets_no_ignition_and_reports_nothing() -> None:
    """It is in the command line of the kernel, which every process of the machine can read."""
    window = windows.serve_script(
        opened(), NOW, token="script", image_token="image", client=C, lease_known=True, trust=Trust.LEASE
    )
    with pytest.raises(Refused):
        windows.serve_ignition(window, NOW, token="image", report_token="report", client=C)
    fetched = windows.serve_ignition(window, NOW, token="script", report_token="report", client=C)
    with pytest.raises(Refused):
        windows.accept_report(fetched, NOW, token="image")


def test_the_ignition_is_served_again_for_a_short_time() -> None:
    """Token and address must be the same; the period begins with the first answer; older report tokens are invalid."""
    first = windows.serve_ignition(served(), NOW, token="script", report_token="one", client=C)
    late = NOW + windows.IGNITION_RETRY_PERIOD - timedelta(seconds=1)
    again = windows.serve_ignition(first, late, token="script", report_token="two", client=C)
    assert (again.phase, again.ignition_served_at) == (Phase.IGNITION_SERVED, NOW)
    with pytest.raises(Refused, match="not the one of this boot"):
        windows.accept_report(again, late, token="one")
    assert windows.accept_report(again, late, token="two").phase == Phase.SUCCEEDED
    with pytest.raises(Refused) as refused:
        windows.serve_ignition(
            again, NOW + windows.IGNITION_RETRY_PERIOD, token="script", report_token="three", client=C
        )
    assert refused.value.reason == "TokenSpent"


@pytest.mark.parametrize("purpose", ["Discovery", "Claim", "Maintenance"])
@pytest.mark.parametrize(("token", "client"), [("script", OTHER), ("wrong", C), ("", C)])
def test_another_client_does_not_get_the_ignition_again(purpose: str, token: str, client: str) -> None:
    """Another address with the token, or the address without the token, gets no Ignition."""
    window = windows.serve_ignition(served(purpose), NOW, token="script", report_token="one", client=C)
    with pytest.raises(Refused):
        windows.serve_ignition(window, NOW, token=token, report_token="two", client=client)


@pytest.mark.parametrize("over", [windows.close, windows.contest])
def test_a_boot_that_was_stopped_repeats_nothing(over: Callable[[BootWindow], BootWindow]) -> None:
    """A closed boot of a claim serves no Ignition again."""
    window = windows.serve_ignition(served("Claim"), NOW, token="script", report_token="", client=C)
    assert windows.serve_ignition(window, NOW, token="script", report_token="", client=C).phase == Phase.SUCCEEDED
    with pytest.raises(Refused):
        windows.serve_ignition(over(window), NOW, token="script", report_token="", client=C)


def test_a_machine_that_has_reported_does_not_get_its_ignition_again() -> None:
    """After the report the Ignition is not served again."""
    window = windows.serve_ignition(served(), NOW, token="script", report_token="one", client=C)
    done = windows.accept_report(window, NOW, token="one")
    with pytest.raises(Refused):
        windows.serve_ignition(done, NOW, token="script", report_token="two", client=C)


@pytest.mark.parametrize("phase", [Phase.CLOSED, Phase.CONTESTED])
def test_an_expired_window_cannot_be_contested(phase: Phase) -> None:
    """An expired or closed window keeps its phase."""
    window = windows.close(served()) if phase is Phase.CLOSED else windows.contest(served())
    assert not windows.is_contestable(window, NOW)


def test_a_finished_boot_is_contestable_for_some_minutes() -> None:
    """A second script request contests a finished boot only within the regret time."""
    window = windows.serve_ignition(served("Claim"), NOW, token="script", report_token="", client=C)
    assert windows.is_contestable(window, NOW + windows.CONTEST_PERIOD - timedelta(seconds=1))
    assert not windows.is_contestable(window, NOW + windows.CONTEST_PERIOD)


class AnyOrder(RuleBasedStateMachine):
    """Requests of any client in any order: a token works once, and nothing is served after the window."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.window = opened(minimum="FirstRequest")
        self.script_tokens: list[str] = []
        self.report_tokens: list[str] = []
        self.reports = 0
        self.ignitions: list[tuple[str, str, datetime]] = []

    @rule(seconds=st.sampled_from([1, 19, 300, 1000]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(lease=st.booleans())
    def ask_script(self, lease: bool) -> None:
        token, trust = f"s{len(self.script_tokens)}", Trust.LEASE if lease else Trust.FIRST_REQUEST
        try:
            self.window = windows.serve_script(
                self.window, self.now, token=token, client="c", lease_known=lease, trust=trust
            )
        except Refused as refused:
            if refused.reason == "BootContested":
                self.window = windows.contest(self.window)
            return
        assert not self.ignitions
        self.script_tokens.append(token)

    @rule(data=st.data(), client=st.sampled_from([C, OTHER]))
    def ask_ignition(self, data: st.DataObject, client: str) -> None:
        token = data.draw(st.sampled_from(["", "wrong", *self.script_tokens]))
        report = f"r{len(self.report_tokens)}"
        try:
            self.window = windows.serve_ignition(self.window, self.now, token=token, report_token=report, client=client)
        except Refused:
            return
        assert token == self.script_tokens[-1]
        asked = self.window.script_served_at
        assert asked is not None
        assert self.window.trust == "Lease" or self.now - asked >= windows.CONTEST_PERIOD
        self.ignitions.append((token, client, self.now))
        self.report_tokens.append(report)

    @rule(data=st.data())
    def send_report(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(["", "wrong", *self.script_tokens, *self.report_tokens]))
        try:
            self.window = windows.accept_report(self.window, self.now, token=token)
        except Refused:
            return
        assert token == self.report_tokens[-1]
        self.reports += 1

    @rule()
    def close(self) -> None:
        self.window = windows.close(self.window)

    @invariant()
    def everything_happens_at_most_once(self) -> None:
        assert len({(token, client) for token, client, _ in self.ignitions}) <= 1
        assert all(at - self.ignitions[0][2] < windows.IGNITION_RETRY_PERIOD for _, _, at in self.ignitions)
        assert self.reports <= min(1, len(self.ignitions))

    @invariant()
    def what_is_over_has_no_live_token(self) -> None:
        if self.window.phase in (Phase.SUCCEEDED, Phase.CONTESTED, Phase.CLOSED):
            assert (self.window.token_digest, self.window.report_token_digest) == ("", "")
            assert not self.window.spent_token_digest
        assert windows.is_open(self.window, self.window.expires_at) is False
        assert self.window.purpose == Purpose.DISCOVERY


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


def test_a_token_of_undecodable_bytes_is_invalid() -> None:
    """Undecodable bytes arrive as lone surrogates and are an invalid token."""
    with pytest.raises(Refused, match="not the one of this boot"):
        windows.check_token(served(), NOW, "caf\udcc3\udca9")
