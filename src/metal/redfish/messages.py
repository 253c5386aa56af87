"""Turns a Redfish error response into one sentence and one exception (DSP0266, error responses)."""

import http
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from metal.redfish.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCBusy,
    BMCConflict,
    BMCError,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCProtocolError,
    BMCServerError,
)
from metal.redfish.transport import Response

LONGEST = 400
Classify = Callable[[tuple[str, ...]], type[BMCError] | None]
"""The kind of error that MessageIds mean, or None where the HTTP status decides."""
Clean = Callable[[str], str]
"""Removes secrets from what a BMC says, before it is shortened: a part of a secret would not be recognized."""
_GENERAL = ("GeneralError", "Success")
_BY_STATUS: Mapping[int, type[BMCError]] = {
    401: BMCAuthError,
    403: BMCForbidden,
    404: BMCNotFound,
    405: BMCNotSupported,
    408: BMCBusy,
    409: BMCConflict,
    410: BMCNotFound,
    412: BMCConflict,
    423: BMCConflict,
    428: BMCConflict,
    429: BMCBusy,
    501: BMCNotSupported,
    503: BMCBusy,
}


def parse(body: bytes) -> Any:
    """The JSON value of a body, or None where it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def extended_info(value: object) -> Iterator[Mapping[str, Any]]:
    """Every message object of an error response or of a success with extended information."""
    if not isinstance(value, dict):
        return
    inner = value.get("error")
    for holder in (inner, value):
        if isinstance(holder, dict):
            infos = holder.get("@Message.ExtendedInfo")
            infos = infos if isinstance(infos, list) else [infos]
            yield from (info for info in infos if isinstance(info, dict))


def sentence(value: object, clean: Clean = str) -> str:
    """The BMC's messages in one line of at most LONGEST characters, after `clean`; empty when there are none."""
    specific: list[str] = []
    general: list[str] = []
    for info in extended_info(value):
        identity, text = _text(info.get("MessageId")), _text(info.get("Message"))
        words = text or identity
        target = general if identity.endswith(_GENERAL) else specific
        if words and words not in target:
            target.append(words)
    if not specific and isinstance(value, dict) and isinstance(value.get("error"), dict):
        message = _text(value["error"].get("message"))
        specific = [message] if message else []
    return _clip(clean(" ".join(_stopped(words) for words in specific or general)))


def message_ids(value: object) -> tuple[str, ...]:
    """The last part of each MessageId, for instance SessionLimitExceeded."""
    return tuple(identity.rpartition(".")[2] for identity in full_message_ids(value))


def full_message_ids(value: object) -> tuple[str, ...]:
    """Each MessageId with its registry and version, for instance Base.1.8.SessionLimitExceeded."""
    return tuple(_text(info.get("MessageId")) for info in extended_info(value))


def by_status(ids: tuple[str, ...]) -> type[BMCError] | None:
    """A Classify that knows no messages."""
    return None


def failed_inside(value: object) -> bool:
    """True for the body of a success status that nevertheless reports a failure.

    HPE reports successes inside `error`, so only a critical severity counts.
    """
    if not isinstance(value, dict) or not isinstance(value.get("error"), dict):
        return False
    severities = [_text(info.get("MessageSeverity") or info.get("Severity")) for info in extended_info(value)]
    return "Critical" in severities


def error_for(response: Response, what: str, classify: Classify = by_status, clean: Clean = str) -> BMCError:
    """The exception for a status of 300 or more. `what` names request and BMC, as the start of a sentence."""
    body = parse(response.body)
    words = sentence(body, clean)
    status = f"{response.status} {_phrase(response.status)}".strip()
    text = f"{what} was answered {status}" + (f": {words}" if words else ".")
    error = _kind(response.status, classify(full_message_ids(body)))(text)
    error.message_ids = message_ids(body)
    if isinstance(error, BMCBusy):
        error.retry_after = _seconds(response.headers.get("retry-after"))
    return error


def _kind(status: int, meant: type[BMCError] | None) -> type[BMCError]:
    if status < 400:
        return BMCProtocolError
    known = _BY_STATUS.get(status, BMCServerError if status >= 500 else BMCBadRequest)
    if meant is None or known in (BMCAuthError, BMCConflict) or issubclass(known, meant):
        return known  # 401 leads to a new login, and 409 says what the message repeats
    if known is BMCBusy:
        return meant if meant is BMCAuthError else known  # 429 and 503 say when to ask again, whatever the message
    if meant.permanent:
        return meant if meant is BMCAuthError or issubclass(known, BMCServerError) else known
    return meant if meant is BMCBusy or known.permanent else known


def _seconds(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,6}", text.strip()) else None


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _text(value: object) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in value).split()) if isinstance(value, str) else ""


def _stopped(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
