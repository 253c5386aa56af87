"""Passwords and tokens live in Secrets and BMCSecrets, and nowhere else."""

import base64
from collections.abc import Iterable

import msgspec

from metal.sim.history import Change, Happening, History
from metal.sim.invariants.world import Entry, InvariantViolation

HOMES = ("Secret", "BMCSecret")
_SHORTEST = 6
"""Characters; anything shorter is found by chance."""


def check_secrets(history: History, secrets: Iterable[str]) -> None:
    """None of these texts, plain or in base64, is in any object but Secrets and BMCSecrets, nor in the history."""
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
    if isinstance(entry, Happening):
        return str(entry)
    if entry.obj is None or entry.kind in HOMES:
        return ""
    return msgspec.json.encode(entry.obj).decode()


def _name(entry: Entry) -> str:
    if isinstance(entry, Change):
        return f"{entry.kind} {entry.namespace}/{entry.name}" if entry.namespace else f"{entry.kind} {entry.name}"
    return f"the history of machine {entry.machine}"
