"""The explanation of one object: lines for humans and JSON for programs, with the same content."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from metal.cli.objects.events import EventSummary, sentence
from metal.cli.support.table import age, printable
from metal.cli.why.advice import Advice
from metal.cli.why.remedies import remedies

_EVENTS = 8
"""Number of Events in the output for humans, the latest."""


@dataclass
class Explanation:
    """Sentences that explain the state of one object."""

    subject: str
    """kind/name."""
    doing: list[str] = field(default_factory=list)
    """Its state, and what is being done."""
    wait: dict[str, Any] | None = None
    """Name, text, since and until of the current wait."""
    tried: list[str] = field(default_factory=list)
    """What was tried so far."""
    events: list[EventSummary] = field(default_factory=list)
    """Its Events, oldest first."""
    advice: list[str] = field(default_factory=list)
    """What an administrator can do."""
    parts: list["Explanation"] = field(default_factory=list)
    """Explanations of the objects that it depends on."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further fields of the JSON output."""

    def advise(self, sentence: str) -> None:
        """Add advice, unless it is there already."""
        if sentence and sentence not in self.advice:
            self.advice.append(sentence)

    def advise_on(self, message: str, known: Advice | None, **names: str) -> None:
        """Add the instructions of a message, or the advice of the tables if it has none."""
        found = remedies(message)
        fallback = [known.way_out.format(**names)] if known is not None else []
        for one in found or fallback:
            self.advise(one)

    def as_json(self) -> dict[str, Any]:
        """Return the explanation for programs."""
        return {
            "subject": self.subject, "doing": self.doing, "wait": self.wait, "tried": self.tried,
            "events": [event.as_json() for event in self.events], "advice": self.advice, **self.facts,
            "parts": [part.as_json() for part in self.parts],
        }  # fmt: skip

    def lines(self, now: datetime) -> list[str]:
        """Return the explanation for humans."""
        found = [printable(self.subject), *_indented(self.doing)]
        found += _block("Tried:", self.tried)
        found += _block("Events:", [sentence(event, now) for event in self.events[-_EVENTS:]])
        found += _block("What you can do:", self.advice)
        for part in self.parts:
            found += ["", *part.lines(now)]
        return found


def _block(title: str, sentences: list[str]) -> list[str]:
    return [f"  {title}", *_indented(_indented(sentences))] if sentences else []


def _indented(sentences: list[str]) -> list[str]:
    return [f"  {printable(sentence)}" for sentence in sentences]


def ago(moment: datetime | None, now: datetime) -> str:
    """Return `12m ago`, or `at an unknown time`."""
    return f"{age(moment, now)} ago" if moment is not None else "at an unknown time"


def deadline(moment: datetime | None, now: datetime) -> str:
    """Return the deadline of a wait, with the remaining time."""
    if moment is None:
        return "without a deadline"
    left = int((moment - now).total_seconds())
    clock = moment.astimezone(UTC).strftime("%H:%M:%S UTC")
    return f"until {clock} (in {_span(left)})" if left > 0 else f"until {clock}, which has passed"


def _span(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds < 7200 else f"{seconds // 3600}h{seconds // 60 % 60}m"


def stamp(moment: datetime | None) -> str | None:
    """Return the time as RFC 3339, or None."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
