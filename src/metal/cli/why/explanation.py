"""What is told of one object: the same for people, in lines, and for programs, as JSON."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from metal.cli.objects.events import EventSummary, sentence
from metal.cli.support.table import age, printable

_EVENTS = 8
"""How many of the last Events people are shown."""


@dataclass
class Explanation:
    """Sentences about one object."""

    subject: str
    """kind/name."""
    doing: list[str] = field(default_factory=list)
    """What it is, and what is being done."""
    wait: dict[str, Any] | None = None
    """name, text, since, until of what is awaited."""
    tried: list[str] = field(default_factory=list)
    """What was done already."""
    events: list[EventSummary] = field(default_factory=list)
    """What happened, oldest first."""
    advice: list[str] = field(default_factory=list)
    """What a person can do."""
    parts: list["Explanation"] = field(default_factory=list)
    """Of what it depends on."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Only for programs."""

    def advise(self, sentence: str) -> None:
        """Something that a person can do; told once."""
        if sentence and sentence not in self.advice:
            self.advice.append(sentence)

    def as_json(self) -> dict[str, Any]:
        """The explanation for programs."""
        return {
            "subject": self.subject, "doing": self.doing, "wait": self.wait, "tried": self.tried,
            "events": [event.as_json() for event in self.events], "advice": self.advice, **self.facts,
            "parts": [part.as_json() for part in self.parts],
        }  # fmt: skip

    def lines(self, now: datetime) -> list[str]:
        """The explanation for people."""
        found = [printable(self.subject), *_indented(self.doing)]
        found += _block("Tried:", self.tried)
        found += _block("Happened:", [sentence(event, now) for event in self.events[-_EVENTS:]])
        found += _block("What you can do:", self.advice)
        for part in self.parts:
            found += ["", *part.lines(now)]
        return found


def _block(title: str, sentences: list[str]) -> list[str]:
    return [f"  {title}", *_indented(_indented(sentences))] if sentences else []


def _indented(sentences: list[str]) -> list[str]:
    return [f"  {printable(sentence)}" for sentence in sentences]


def ago(moment: datetime | None, now: datetime) -> str:
    """`12m ago`, or `at an unknown time`."""
    return f"{age(moment, now)} ago" if moment is not None else "at an unknown time"


def deadline(moment: datetime | None, now: datetime) -> str:
    """How long a wait may still take."""
    if moment is None:
        return "without a deadline"
    left = int((moment - now).total_seconds())
    clock = moment.astimezone(UTC).strftime("%H:%M:%S UTC")
    return f"until {clock} (in {_span(left)})" if left > 0 else f"until {clock}, which has passed"


def _span(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s" if seconds < 7200 else f"{seconds // 3600}h{seconds // 60 % 60}m"


def stamp(moment: datetime | None) -> str | None:
    """RFC 3339, for programs."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
