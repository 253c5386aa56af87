"""The command line of a program that generates one page of docs/: writes it, or checks that it is up to date."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def run(
    program: str, description: str | None, page: Path, render: Callable[[Path], str], arguments: Sequence[str] | None
) -> int:
    """Exit status: 0, or 1 when --check finds the page outdated. `render` is given the path of the present page."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is outdated")
    parser.add_argument("--output", type=Path, default=page, metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(arguments)
    text = render(options.output)
    if not options.check:
        options.output.write_text(text, encoding="utf-8")
        return 0
    if options.output.exists() and options.output.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{options.output} is outdated: run `make generate` and commit the result\n")
    return 1
