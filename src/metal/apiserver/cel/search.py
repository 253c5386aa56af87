"""Searches text for a regular expression (RE2 syntax) in time proportional to the length of the text.

CEL's `find` and `findAll` return the matching text. The CEL engine only returns whether there is a match (`matches`, in
linear time), and `re` of Python backtracks: with a pattern such as `(a+)+$` each further character doubles its time.
Here a pattern is compiled to instructions (`pattern_syntax`), which are run as a Pike virtual machine: all alternatives
are followed at the same time, one character after the other, and each instruction runs at most once for a character.
Alternatives are tried in their order, so the match is the one that a backtracking engine finds first. The number of
instructions of one search is limited.
"""

from collections.abc import Iterator
from functools import lru_cache

from metal.apiserver.cel.pattern_syntax import Assert, Char, Jump, Match, PatternError, Split, compile_pattern

__all__ = ["STEPS", "PatternError", "SearchTooLong", "find", "find_all"]

STEPS = 500_000
"""Most instructions of one call. They take some tenths of a second, during which no other request is served."""
Instruction = Assert | Char | Jump | Match | Split


class SearchTooLong(ValueError):
    """The text or the pattern is too long for STEPS."""


def find(text: str, pattern: str) -> str:
    """The first match, or an empty string. Raises PatternError, SearchTooLong."""
    return next(_matches(text, pattern), "")


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Matches in order that do not overlap, at most `limit` of them unless it is negative."""
    found: list[str] = []
    for match in _matches(text, pattern):
        if len(found) == limit:
            break
        found.append(match)
    return found


@lru_cache(maxsize=256)
def _program(pattern: str) -> tuple[Instruction, ...]:
    return compile_pattern(pattern)


def _matches(text: str, pattern: str) -> Iterator[str]:
    search = _Search(_program(pattern), text)
    start, after = 0, -1
    while start <= len(text) and (span := search.first(start)) is not None:
        begin, end = span
        if begin == end == after:  # as in Go: no empty match directly after a match
            start = end + 1
            continue
        yield text[begin:end]
        after = end
        start = end if end > begin else end + 1


class _Search:
    """The search of one text."""

    def __init__(self, program: tuple[Instruction, ...], text: str) -> None:
        self._program, self._text = program, text
        self._left = STEPS

    def first(self, start: int) -> tuple[int, int] | None:
        """Begin and end of the first match from a position."""
        text, best = self._text, None
        threads: dict[int, int] = {}  # instruction to begin, in the order of priority
        seen: set[int] = set()
        for at in range(start, len(text) + 1):
            if best is None:
                self._follow(threads, seen, 0, at, at)
            elif not threads:
                break
            char = text[at] if at < len(text) else ""
            following: dict[int, int] = {}
            seen = set()
            for place, begin in threads.items():
                instruction = self._program[place]
                if isinstance(instruction, Match):
                    best = (begin, at)
                    break  # the remaining alternatives have a lower priority
                if isinstance(instruction, Char) and char and instruction.accepts(char):
                    self._follow(following, seen, place + 1, begin, at + 1)
            threads = following
        return best

    def _follow(self, threads: dict[int, int], seen: set[int], place: int, begin: int, at: int) -> None:
        """Add the instructions that are reached without a character and were not seen at this position."""
        open_ = [place]
        while open_:
            place = open_.pop()
            if place in seen:
                continue
            seen.add(place)
            self._spend()
            instruction = self._program[place]
            if isinstance(instruction, Jump):
                open_.append(instruction.to)
            elif isinstance(instruction, Split):
                open_ += (instruction.second, instruction.first)
            elif isinstance(instruction, Assert):
                if instruction.holds(self._text, at):
                    open_.append(place + 1)
            else:
                threads[place] = begin

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SearchTooLong("validation failed due to running out of cost budget")
