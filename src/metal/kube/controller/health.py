"""Named checks of a process, and the answers of /livez and /readyz in the format of kube-apiserver.

A check is a function that returns why it fails, or an empty text. Checks are asked at each request; they read what
other tasks keep up to date and never wait, so a probe costs nothing and is answered while everything else fails.
`/livez` has the checks that only a restart can end, `/readyz` all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Check = Callable[[], str]
"""Returns why the check fails; empty when it does not."""


@dataclass(frozen=True)
class Answer:
    """The answer to a probe."""

    passed: bool
    text: str


class Health:
    """The checks of one process. `ping` always passes: the process answers."""

    def __init__(self) -> None:
        self._ready: dict[str, Check] = {"ping": lambda: ""}
        self._live: dict[str, Check] = dict(self._ready)

    def __repr__(self) -> str:
        return f"<Health {'ready' if self.passed else 'not ready'} checks={','.join(self._ready)}>"

    def add(self, name: str, check: Check, *, live: bool = False) -> None:
        """Ask a check for /readyz, and for /livez when only a restart ends its failure. Replaces one of that name."""
        self._ready[name] = check
        if live:
            self._live[name] = check

    @property
    def passed(self) -> bool:
        """Whether every check passes."""
        return not any(check() for check in self._ready.values())

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """The answer for a path such as /readyz or /readyz/ping; None when there is no such check.

        `verbose` in the query asks for one check per line, which a failure has anyway.
        """
        probe, _, one = path.strip("/").partition("/")
        checks = self._live if probe == "livez" else self._ready
        if one:
            return _single(checks[one]()) if one in checks else None
        found = {name: check() for name, check in checks.items()}
        passed = not any(found.values())
        if passed and "verbose" not in query:
            return Answer(True, "ok")
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in found.items()]
        return Answer(passed, "\n".join([*lines, f"{probe} check {'passed' if passed else 'failed'}", ""]))


def _single(why: str) -> Answer:
    return Answer(not why, f"internal server error: {why}" if why else "ok")
