"""Takes out of kubectl's output what no two runs have in common, and leaves everything else."""

import json
import re

_RULES = (
    # Random UUIDs only: those of machines in the manifests stay.
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b", "<uid>"),
    (r"(?<!2026-01-0)\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "<time>"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    # Also where an object is quoted within a message.
    (r'("?resourceVersion\\?"?: ?\\?")\d+', r"\1<version>"),
    (r"(Resource Version: +)\d+", r"\1<version>"),
    (r"https://127\.0\.0\.1:\d+", "<server>"),
    (r"(?<![\w.:-])\d+[smhdy](\d+[smhd])?(?![\w.:-])", "<age>"),
    # What client-go logs about its own watches depends on its timing.
    (r"(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n", ""),
    (r"WARNING: version difference between client .*\n", ""),
    (r"v1\.\d+\.\d+(\+\w+)?", "<release>"),
    (r"/tmp/\S+", "<file>"),
)


def normalise(text: str, run: str, *, only: str = "", blur: str = "", shuffled: bool = False) -> str:
    """The text without times, ages, UIDs, versions, ports and the run's own suffix; columns two spaces apart."""
    lines = [line for line in text.splitlines() if not only or re.search(only, line)]
    text = "".join(line + "\n" for line in (sorted(lines) if shuffled else lines))
    if blur:
        text = re.sub(blur, "<blurred>", text)
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    # The width of a column follows its ages.
    text = re.sub(r"(?<=\S) {2,}", "  ", text)
    return re.sub(r" +$", "", text, flags=re.MULTILINE).replace(run, "RUN")


def sorted_json(text: str) -> str:
    """JSON with its keys in order, one value a line; the text itself where it is no JSON."""
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    except ValueError:
        return text
