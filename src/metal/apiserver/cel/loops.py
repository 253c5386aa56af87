"""What the text of a rule tells without running it: names as CEL spells them, and how often it loops."""

import re

LOOPS = r"(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap|transformMapEntry)"
_TEXT = re.compile(r"""r?"(?:\\.|[^"\\])*"|r?'(?:\\.|[^'\\])*'""")
_LOOP = re.compile(rf"\.\s*{LOOPS}\s*\(")
_SEARCH = re.compile(r"\bin\b")
_UNESCAPES = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_ESCAPED = re.compile("|".join(_UNESCAPES))


def unescaped(name: str) -> str:
    """A property's name from the way CEL spells it: the inverse of `cel.escape`."""
    if name.startswith("__") and name.endswith("__") and name not in _UNESCAPES and len(name) > 4:
        return name[2:-2]
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0]], name)


def blanked(rule: str) -> str:
    """The rule with texts blanked out, every other character at its place."""
    return _TEXT.sub(lambda match: " " * len(match[0]), rule)


def depth(rule: str) -> int:
    """How many loops stand within each other; a search in a list or map counts as one."""
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
