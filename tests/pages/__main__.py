"""Writes docs/behaviour.md and docs/failures.md. `python -m tests.pages [--check]`."""

import argparse
import sys
from pathlib import Path

from tests.pages import behaviour, failures

TOP = Path(__file__).parents[2]
PAGES = {"docs/behaviour.md": behaviour.page, "docs/failures.md": failures.page}


def main(arguments: list[str] | None = None, top: Path = TOP) -> int:
    """Exit status: 0, or 1 when --check finds a page stale."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    check = parser.parse_args(arguments).check
    stale = [name for name, page in PAGES.items() if _is_stale(top / name, page(top / "tests"), check=check)]
    for name in stale:
        sys.stderr.write(f"{name} is outdated: run `make generate` and commit the result\n")
    return 1 if stale else 0


def _is_stale(file: Path, text: str, *, check: bool) -> bool:
    if not check:
        file.write_text(text, encoding="utf-8")
        return False
    return not file.is_file() or file.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main())
