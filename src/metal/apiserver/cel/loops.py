"""How deeply the loops of a rule are nested, read from its text without running it."""

import re

_TEXT = re.compile(r"""r?"(?:\\.|[^"\\])*"|r?'(?:\\.|[^'\\])*'""")
_LOOP = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap|transformMapEntry)\s*\("
)
_SEARCH = re.compile(r"\bin\b")


def blanked(rule: str) -> str:
    """The rule with string literals replaced by spaces; every other character keeps its position."""
    return _TEXT.sub(lambda match: " " * len(match[0]), rule)


def depth(rule: str) -> int:
    """How many loops are nested within each other; a search in a list or map counts as one."""
    plain = blanked(rule)
    starts = {match.end() - 1 for match in _LOOP.finditer(plain)}
    open_, deepest = [], 0
    for at, char in enumerate(plain):
        if char == "(":
            open_.append(at in starts)
        elif char == ")" and open_:
            open_.pop()
        deepest = max(deepest, sum(open_) + (1 if _SEARCH.match(plain, at) else 0))
    return deepest
