"""Passwords and tokens appear in Secrets and BMCSecrets only."""

import base64
from collections.abc import Iterable

import msgspec

from metal.sim.history import History, MachineEvent, ObjectChange
from metal.sim.invariants.world import Entry, InvariantViolation

HOMES = ("Secret", "BMCSecret")
_SHORTEST = 6
"""Minimum length in characters; shorter texts would match by chance."""


def check_secrets(history: History, secrets: Iterable[str]) -> None:
    """None of these texts, plain or in base64, is in the history or in objects other than Secrets and BMCSecrets."""
    known = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms(secret)}
    if not known:
        return
    for entry in history:
        text = _text(entry)
        if any(secret in text for secret in known):
            raise InvariantViolation(f"{entry.at:%H:%M:%S}: {_name(entry)} holds a password or token")


def _forms(secret: str) -> tuple[str, str]:
    return secret, base64.b64encode(secret.encode()).decode().rstrip("=")


def _text(entry: Entry) -> str:
    if isinstance(entry, MachineEvent):
        return str(entry)
    if entry.obj is None or entry.kind in HOMES:
        return ""
    return msgspec.json.encode(entry.obj).decode()


def _name(entry: Entry) -> str:
    if isinstance(entry, ObjectChange):
        return f"{entry.kind} {entry.namespace}/{entry.name}" if entry.namespace else f"{entry.kind} {entry.name}"
    return f"the history of machine {entry.machine}"
