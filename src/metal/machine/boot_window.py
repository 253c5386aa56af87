"""The transitions of a boot window: what a machine may fetch during one network boot, and what ends the boot.

A boot window is one network boot of one server. It is kept in Server.status, so that every replica of the boot server
and of the registry sees the same one, and each transition is written with the Server's resourceVersion (see
`boot_window_store`): of two concurrent requests one succeeds, the other decides again on the newer version.

- *Opened* by the Server controller immediately before it powers the machine on. No other power-on opens a window, so a
  machine that is powered on manually is served nothing.
- *Served* in this order, each step with a token from the step before: the boot script (`serve_script`), the images
  (`check_token`), the Ignition (`serve_ignition`), the acceptance of the probe's report (`accept_report`). A token is
  valid for one step; serving the next step spends it.
- *Trusted* as far as it is known that the machine itself received the script (`Trust`). Below `minimum_trust` of the
  window nothing is served (`TrustTooLow`). With `FirstRequest` it is not known, so the Ignition waits until nobody else
  has requested the script for `CONTEST_PERIOD` (`NotConfirmed`).
- *Fetched* after the Ignition, with a token of its own (`check_image_token`): the files of this boot's image, such as a
  root file system, until the window expires or the boot is closed or contested.
- *Asked* in an erasure: the probe asks whether it may erase the drives that it sees (`ask_erasure`), and the controller
  allows exactly these (`allow_erasure`).
- *Remembered*: SHA-256 digests of tokens, never tokens, since everybody who may read a Server reads its status; the
  address that was served and the time. A response can be lost after its token was spent, so the client that received
  the Ignition may fetch it again for `IGNITION_RETRY_PERIOD`, and the same report may be sent again (`is_repeat`).
- *Closed* by the first success (the Ignition of a claim or a maintenance, the report of the probe), by `expires_at` (an
  erasure in progress only by the controller, since its report may have waited for the end of an outage), by the
  controller (`close`), or by `contest`: without a DHCP lease that identifies the machine, the first client receives the
  script, and a second request shows that one of the two was not the machine. The controller then stops that boot and
  starts another. A finished boot stays contestable for `CONTEST_PERIOD`, as firmware may take minutes to send its
  request.

Each function returns a new window, or raises `Refused`.
"""

import hashlib
import hmac
from datetime import datetime, timedelta

import msgspec

from metal.api.boot_window import BootWindow, Phase, Purpose, Trust

CONTEST_PERIOD = timedelta(minutes=5)
"""How long after its script was served a finished boot can still be contested, by default."""

IGNITION_RETRY_PERIOD = timedelta(seconds=20)
"""How long the client that received the Ignition may fetch it again with the same token.

Ignition waits 10 s for an answer, then asks again; the replica that spent the token may have died before it answered.
"""


class Refused(Exception):
    """A request that the window does not allow. `reason` is CamelCase; str() is a sentence without secrets.

    `retry_after` is the time in seconds after which the same request may succeed; 0 when it will not.
    """

    def __init__(self, reason: str, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.reason, self.retry_after = reason, retry_after


class BootContested(Refused):
    """A second client requested the script: nothing more may be served."""

    def __init__(self, message: str) -> None:
        super().__init__("BootContested", message)


class TrustTooLow(Refused):
    """The boot does not reach the trust that its window requires."""

    def __init__(self, trust: str, minimum: str) -> None:
        text = f"the trust of this boot is {trust or 'unknown'}, and at least {minimum} is required"
        super().__init__("TrustTooLow", text)
        self.minimum = minimum


class NotConfirmed(Refused):
    """The Ignition of a boot with trust FirstRequest waits: another client may still request the script."""

    def __init__(self, seconds: float) -> None:
        message = (
            "no DHCP lease shows which machine received the script of this boot, so its Ignition is served in "
            f"{seconds:.0f} s, unless another client requests the script before"
        )
        super().__init__("BootNotConfirmed", message, retry_after=seconds)


class TokenMissing(Refused):
    """A request without a token."""

    def __init__(self) -> None:
        super().__init__("TokenMissing", "the request has no token")


_RANKS = {Trust.OUT_OF_BAND.value: 2, Trust.LEASE.value: 1, Trust.FIRST_REQUEST.value: 0}


def reaches(trust: str, minimum: str) -> bool:
    """True when a boot with this trust may be served where `minimum` is required; an empty one requires nothing."""
    return not minimum or _RANKS.get(trust, -1) >= _RANKS.get(minimum, len(_RANKS))


def higher(one: str, other: str) -> str:
    """The stricter of two minimum trusts."""
    return one if reaches(one, other) else other


def digest(token: str) -> str:
    """SHA-256 of a token in hexadecimal. Bytes of headers and URLs that are not UTF-8 arrive as lone surrogates."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_open(window: BootWindow | None, now: datetime) -> bool:
    """True while the machine may still fetch or report something."""
    live = (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)
    return window is not None and window.phase in live and now < window.expires_at


def require_open(window: BootWindow | None, now: datetime) -> BootWindow:
    """The window, while the machine may still fetch or report something. Raises Refused."""
    if window is None or not is_open(window, now):
        raise Refused("BootWindowClosed", "no network boot of this server is in progress")
    return window


def _require_token(expected: str, token: str) -> None:
    if not expected:
        raise Refused("TokenSpent", "the token was used before, or none was issued")
    if not token or not hmac.compare_digest(expected, digest(token)):
        raise Refused("TokenInvalid", "the token is not the one of this boot")


def serve_script(
    window: BootWindow | None,
    now: datetime,
    *,
    token: str,
    client: str,
    lease_known: bool,
    image_token: str = "",
    trust: Trust = Trust.FIRST_REQUEST,
    contest_period: timedelta = CONTEST_PERIOD,
) -> BootWindow:
    """Serve the script to `client` with a new `token`.

    The caller has already compared the client with the lease, if one is known (lease_known). Then the same machine
    may ask again (a firmware retry), and the older token becomes invalid. Without a known lease, a second request
    means that another client was served before, however far that boot has progressed: raises BootContested, and the
    caller records `contest(window)`. Raises TrustTooLow when `trust` is below the window's minimum.
    """
    in_progress = is_open(window, now) or is_contestable(window, now, contest_period)
    if window is not None and in_progress and not reaches(trust, window.minimum_trust):
        raise TrustTooLow(trust, window.minimum_trust)
    if not lease_known and is_contestable(window, now, contest_period):
        raise BootContested("the script of this boot was already served to another request")
    window = require_open(window, now)
    if window.phase == Phase.IGNITION_SERVED:
        raise Refused("TokenSpent", "this boot has fetched its Ignition already")
    return msgspec.structs.replace(
        window,
        phase=Phase.SCRIPT_SERVED,
        token_digest=digest(token),
        image_token_digest=digest(image_token) if image_token else "",
        client_address=client,
        script_served_at=now,
        trust=trust.value,
    )


def is_contestable(window: BootWindow | None, now: datetime, contest_period: timedelta = CONTEST_PERIOD) -> bool:
    """True while a second request for the script contests this boot: it is in progress, or finished recently.

    contest_period: how long after its script was served a finished boot may be contested; the Server controller waits
    that long before it trusts the boot.
    """
    if window is None or window.script_served_at is None or now >= window.expires_at:
        return False
    if window.phase == Phase.SUCCEEDED:
        return now - window.script_served_at < contest_period
    return window.phase in (Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)


def check_token(window: BootWindow | None, now: datetime, token: str) -> BootWindow:
    """The window, when `token` is its valid script token (needed for images). Raises Refused."""
    window = require_open(window, now)
    _require_token(window.token_digest, token)
    return window


def check_image_token(window: BootWindow | None, now: datetime, token: str) -> BootWindow:
    """The window, when `token` is valid for the files of its image: the script's token until it is spent, or the
    image's token as long as the boot. Raises Refused."""
    served = (Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED, Phase.SUCCEEDED)
    live = window is not None and window.phase in served and now < window.expires_at
    if window is not None and live and hmac.compare_digest(window.image_token_digest, digest(token)):
        return window
    return check_token(window, now, token)


def serve_ignition(
    window: BootWindow | None,
    now: datetime,
    *,
    token: str,
    report_token: str,
    client: str,
    leased: bool = False,
    contest_period: timedelta = CONTEST_PERIOD,
) -> BootWindow:
    """Serve the Ignition: the script's token is spent, and the token for the report becomes valid.

    For a claim or a maintenance this is the first success and ends the boot. A machine that missed the answer may fetch
    it again for `IGNITION_RETRY_PERIOD`; then only the newest token for the report is valid. `leased` says that DHCP
    has meanwhile leased the address that got the script to the machine, which raises FirstRequest to Lease.
    Raises Refused, and NotConfirmed until a boot with FirstRequest was not contested for `contest_period`.
    """
    again = _is_repeat_of_ignition(window, now, token, client)
    window = window if window is not None and again else check_token(window, now, token)
    if leased and window.trust in ("", Trust.FIRST_REQUEST):
        window = msgspec.structs.replace(window, trust=Trust.LEASE.value)
    if (left := seconds_until_confirmed(window, now, contest_period)) > 0:
        raise NotConfirmed(left)
    done = not expects_report(window)
    return msgspec.structs.replace(
        window,
        phase=Phase.SUCCEEDED if done else Phase.IGNITION_SERVED,
        token_digest="",
        spent_token_digest=digest(token),
        ignition_address=client,
        report_token_digest="" if done else digest(report_token),
        ignition_served_at=window.ignition_served_at if again else now,
    )


def seconds_until_confirmed(window: BootWindow, now: datetime, contest_period: timedelta = CONTEST_PERIOD) -> float:
    """Seconds until a boot counts as the machine's because nobody else requested its script; 0 with a better proof."""
    if window.trust in (Trust.OUT_OF_BAND, Trust.LEASE) or window.script_served_at is None:
        return 0.0
    return max(0.0, (window.script_served_at + contest_period - now).total_seconds())


def expects_report(window: BootWindow) -> bool:
    """True when the booted system sends a report; otherwise the boot succeeds with its Ignition."""
    return window.purpose not in (Purpose.CLAIM, Purpose.MAINTENANCE)


def _is_repeat_of_ignition(window: BootWindow | None, now: datetime, token: str, client: str) -> bool:
    """True for the client that received the Ignition a moment ago, until the machine has reported."""
    if window is None or not window.spent_token_digest or window.ignition_served_at is None:
        return False
    done = Phase.IGNITION_SERVED if expects_report(window) else Phase.SUCCEEDED
    if window.phase != done or not now - window.ignition_served_at < IGNITION_RETRY_PERIOD or now >= window.expires_at:
        return False
    return client == window.ignition_address and hmac.compare_digest(window.spent_token_digest, digest(token))


def check_report_token(window: BootWindow | None, now: datetime, token: str) -> BootWindow:
    """The window, when `token` is its valid report token. Raises Refused."""
    if window is not None and window.phase == Phase.SUCCEEDED:
        raise Refused("TokenSpent", "the report of this boot was accepted before")
    if window is None or not _is_erasing(window):
        window = require_open(window, now)
    _require_token(window.report_token_digest, token)
    if not reaches(window.trust, window.minimum_trust):
        raise TrustTooLow(window.trust, window.minimum_trust)
    return window


def _is_erasing(window: BootWindow) -> bool:
    """True until the controller has judged an erasure: its report counts also after an outage at the deadline."""
    return window.purpose == Purpose.SANITIZATION and window.phase == Phase.IGNITION_SERVED


def report_receipt(token: str, content: bytes) -> str:
    """Digest of an accepted report and its token: it identifies both and discloses neither."""
    return digest(f"{token}\n{hashlib.sha256(content).hexdigest()}")


def is_repeat(window: BootWindow | None, now: datetime, receipt: str) -> bool:
    """True for the report that this boot has already accepted, sent again because the answer was lost."""
    if window is None or not window.receipt or now >= window.expires_at:
        return False
    return hmac.compare_digest(window.receipt, receipt)


def accept_report(window: BootWindow | None, now: datetime, *, token: str, receipt: str = "") -> BootWindow:
    """Accept the probe's (final) report: the boot has succeeded and the token is spent. Raises Refused."""
    window = check_report_token(window, now, token)
    return msgspec.structs.replace(
        window, phase=Phase.SUCCEEDED, report_token_digest="", spent_token_digest="", reported_at=now, receipt=receipt
    )


def ask_erasure(window: BootWindow | None, now: datetime, *, token: str, drives: str) -> BootWindow:
    """The probe asks to erase these `drives` (their digest). Raises Refused."""
    return msgspec.structs.replace(check_report_token(window, now, token), erasure_asked=drives)


def awaits_permission(window: BootWindow) -> bool:
    """True while the drives that the probe asked to erase are not allowed to be erased, also once the boot ended."""
    return window.erasure_asked not in ("", window.erasure_allowed)


def allow_erasure(window: BootWindow, expires_at: datetime) -> BootWindow:
    """Allow the erasure of the drives that the probe asked for; its time begins now and ends at `expires_at`."""
    return msgspec.structs.replace(window, erasure_allowed=window.erasure_asked, expires_at=expires_at)


def succeed(window: BootWindow) -> BootWindow:
    """End a boot without Ignition that has fetched what its firmware needs; the rest of the image stays available."""
    image = window.image_token_digest
    return msgspec.structs.replace(_spend_all(window, Phase.SUCCEEDED), image_token_digest=image)


def contest(window: BootWindow) -> BootWindow:
    """End a boot that two clients requested: nothing more is served; the Server controller stops and restarts it."""
    return _spend_all(window, Phase.CONTESTED)


def close(window: BootWindow) -> BootWindow:
    """Serve nothing more."""
    return _spend_all(window, Phase.CLOSED)


def _spend_all(window: BootWindow, phase: Phase) -> BootWindow:
    return msgspec.structs.replace(
        window, phase=phase, token_digest="", image_token_digest="", spent_token_digest="", report_token_digest=""
    )
