"""The boot window: one network boot, from our own power-on to its first success or time-out.

It lives in Server.status, so that every replica of the boot server and of the registry sees the same one. Only digests
of tokens are kept. The functions here are the only transitions; each returns a new window, or raises `Refused`.
"""

import hashlib
import hmac
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from metal.api.common import ObjectRef
from metal.api.meta import Model


class Purpose(StrEnum):
    """Purpose of a network boot."""

    DISCOVERY = "Discovery"
    CLAIM = "Claim"
    MAINTENANCE = "Maintenance"
    SANITIZATION = "Sanitization"


class Phase(StrEnum):
    """Progress of a network boot."""

    OPEN = "Open"
    SCRIPT_SERVED = "ScriptServed"
    IGNITION_SERVED = "IgnitionServed"
    SUCCEEDED = "Succeeded"
    CONTESTED = "Contested"
    CLOSED = "Closed"


class BootWindow(Model, frozen=True, kw_only=True):
    """One network boot of a server."""

    id: str
    """Random identifier of this boot. A report must carry a token of it."""
    purpose: str
    """Purpose of the boot: Discovery, Claim, Maintenance or Sanitization."""
    config_ref: ObjectRef
    """ServerBootConfiguration that is booted."""
    config_uid: str = msgspec.field(name="configUID", default="")
    """UID of the ServerBootConfiguration."""
    config_generation: int = 0
    """The metadata.generation of the ServerBootConfiguration. A different generation requires another boot."""
    image: str = ""
    """Image that is booted."""
    ignition_secret: str | None = None
    """Name of the Secret that holds the Ignition. Empty without Ignition."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim. Set when the purpose is Claim."""
    boot_generation: int = 0
    """The spec.bootGeneration of the claim for which this boot is done."""
    phase: str = "Open"
    """Progress of the boot: Open, ScriptServed, IgnitionServed, Succeeded, Contested or Closed."""
    opened_at: datetime
    """Time at which the window was opened."""
    expires_at: datetime
    """Time at which the window expires."""
    client_address: str = ""
    """IP address to which the script was served."""
    script_served_at: datetime | None = None
    """Time at which the script was served."""
    ignition_served_at: datetime | None = None
    """Time at which the Ignition was served."""
    reported_at: datetime | None = None
    """Time at which the report of the probe was accepted. For a sanitization, the final report."""
    token_digest: str = ""
    """SHA-256 of the script's token in hexadecimal. Empty once the token is used."""
    spent_token_digest: str = ""
    """SHA-256 of the token for which the Ignition was served. Its holder can repeat the request for a short time."""
    ignition_address: str = ""
    """IP address to which the Ignition was served. The operating system may have another lease than the firmware."""
    report_token_digest: str = ""
    """SHA-256 of the report's token in hexadecimal. Empty once the token is used."""
    receipt: str = ""
    """SHA-256 over the accepted report and its token. A probe that did not receive the answer can send the same report
    again."""


REGRET = timedelta(minutes=5)
"""How long after its script went out a finished boot can still turn out to have been somebody else's, by default."""

REPEAT = timedelta(seconds=20)
"""How long after the Ignition went out who got it may ask again, with the token that it was handed out for.

Ignition waits 10 s for an answer, then asks again; the replica that spent the token may have died before it answered.
"""


class Refused(Exception):
    """A request that the window does not allow. `reason` is CamelCase; str() is a sentence without secrets."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def digest(token: str) -> str:
    """SHA-256 of a token in hexadecimal. Foreign bytes in headers and URLs arrive as lone surrogates."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_open(window: BootWindow | None, now: datetime) -> bool:
    """True while the machine may still fetch or report something."""
    live = (Phase.OPEN, Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)
    return window is not None and window.phase in live and now < window.expires_at


def require_open(window: BootWindow | None, now: datetime) -> BootWindow:
    """The window, while the machine may still fetch or report something. Raises Refused."""
    if window is None or not is_open(window, now):
        raise Refused("BootWindowClosed", "no network boot of this server is under way")
    return window


def _require_token(expected: str, token: str) -> None:
    if not expected:
        raise Refused("TokenSpent", "the token was used before, or none was given out")
    if not token or not hmac.compare_digest(expected, digest(token)):
        raise Refused("TokenInvalid", "the token is not the one of this boot")


def serve_script(
    window: BootWindow | None,
    now: datetime,
    *,
    token: str,
    client: str,
    lease_known: bool,
    regret: timedelta = REGRET,
) -> BootWindow:
    """The script goes out to `client` with a fresh `token`.

    The caller has already compared the client with the lease where one is known (lease_known). Then the same machine
    may ask again (a firmware retry): the older token dies. Without a known lease a second request means that somebody
    else was first, however far that one came: raises Refused with reason BootContested, and the caller records
    `contest(window)`.
    """
    if not lease_known and is_contestable(window, now, regret):
        raise Refused("BootContested", "the script of this boot was handed out before, to another request")
    window = require_open(window, now)
    if window.phase == Phase.IGNITION_SERVED:
        raise Refused("TokenSpent", "this boot has fetched its Ignition already")
    return msgspec.structs.replace(
        window, phase=Phase.SCRIPT_SERVED, token_digest=digest(token), client_address=client, script_served_at=now
    )


def is_contestable(window: BootWindow | None, now: datetime, regret: timedelta = REGRET) -> bool:
    """True while a second request for the script of this boot is news: under way, or finished not long ago.

    regret: how long after its script went out a finished boot may be contested; the Server's controller waits for it.
    """
    if window is None or window.script_served_at is None or now >= window.expires_at:
        return False
    if window.phase == Phase.SUCCEEDED:
        return now - window.script_served_at < regret
    return window.phase in (Phase.SCRIPT_SERVED, Phase.IGNITION_SERVED)


def check_token(window: BootWindow | None, now: datetime, token: str) -> BootWindow:
    """The window, when `token` is its live script token (needed for images). Raises Refused."""
    window = require_open(window, now)
    _require_token(window.token_digest, token)
    return window


def serve_ignition(
    window: BootWindow | None, now: datetime, *, token: str, report_token: str, client: str
) -> BootWindow:
    """The Ignition goes out: the script's token is spent, and a token for the report begins its life.

    For a claim or a maintenance this is the first success: the window is done. A machine that missed the answer gets it
    again for a moment, and then only the newest token for the report is alive. Raises Refused.
    """
    again = _is_repeat_of_ignition(window, now, token, client)
    window = window if window is not None and again else check_token(window, now, token)
    done = not reports(window)
    return msgspec.structs.replace(
        window,
        phase=Phase.SUCCEEDED if done else Phase.IGNITION_SERVED,
        token_digest="",
        spent_token_digest=digest(token),
        ignition_address=client,
        report_token_digest="" if done else digest(report_token),
        ignition_served_at=window.ignition_served_at if again else now,
    )


def reports(window: BootWindow) -> bool:
    """True when what boots reports back; else the boot is done with its Ignition."""
    return window.purpose not in (Purpose.CLAIM, Purpose.MAINTENANCE)


def _is_repeat_of_ignition(window: BootWindow | None, now: datetime, token: str, client: str) -> bool:
    """True for whom the Ignition was handed out to a moment ago, until the machine showed that it has it."""
    if window is None or not window.spent_token_digest or window.ignition_served_at is None:
        return False
    done = Phase.IGNITION_SERVED if reports(window) else Phase.SUCCEEDED
    if window.phase != done or not now - window.ignition_served_at < REPEAT or now >= window.expires_at:
        return False
    return client == window.ignition_address and hmac.compare_digest(window.spent_token_digest, digest(token))


def check_report_token(window: BootWindow | None, now: datetime, token: str) -> BootWindow:
    """The window, when `token` is its live report token. Raises Refused."""
    if window is not None and window.phase == Phase.SUCCEEDED:
        raise Refused("TokenSpent", "the report of this boot was accepted before")
    window = require_open(window, now)
    _require_token(window.report_token_digest, token)
    return window


def receipt_of(token: str, content: bytes) -> str:
    """What the window keeps of an accepted report: proves both the token and the content, and tells neither."""
    return digest(f"{token}\n{hashlib.sha256(content).hexdigest()}")


def is_repeat(window: BootWindow | None, now: datetime, receipt: str) -> bool:
    """True for the very report that this boot had accepted, sent again because the answer was lost."""
    if window is None or not window.receipt or now >= window.expires_at:
        return False
    return hmac.compare_digest(window.receipt, receipt)


def accept_report(window: BootWindow | None, now: datetime, *, token: str, receipt: str = "") -> BootWindow:
    """The probe's (final) report arrived: the boot has succeeded and its token is spent. Raises Refused."""
    window = check_report_token(window, now, token)
    return msgspec.structs.replace(
        window, phase=Phase.SUCCEEDED, report_token_digest="", spent_token_digest="", reported_at=now, receipt=receipt
    )


def succeed(window: BootWindow) -> BootWindow:
    """The boot needed no Ignition and has fetched everything it needed."""
    return _spend_all(window, Phase.SUCCEEDED)


def contest(window: BootWindow) -> BootWindow:
    """Two parties asked for the same boot: nothing more is served; the Server's controller stops and restarts it."""
    return _spend_all(window, Phase.CONTESTED)


def close(window: BootWindow) -> BootWindow:
    """Nothing more is served."""
    return _spend_all(window, Phase.CLOSED)


def _spend_all(window: BootWindow, phase: Phase) -> BootWindow:
    return msgspec.structs.replace(window, phase=phase, token_digest="", spent_token_digest="", report_token_digest="")
