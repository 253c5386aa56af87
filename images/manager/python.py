"""The Python part of the manager's image: the locked run-time dependencies, and the project's wheel."""

import email.parser
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from images import debian, tree
from images.tree import Tree, file

TOP = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
SITE = "usr/local/lib/python3.11/dist-packages/"
"""Directory of Debian's Python for packages that are not from Debian."""
PLATFORM = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_36")
_COMMAND = b"""#!/usr/bin/python3.11 -I
import sys

from metal.cli import main

sys.exit(main())
"""


@dataclass(frozen=True)
class Distribution:
    """What the bill of materials says of a Python package or a Go module."""

    name: str
    version: str
    license: str


def contents(top: Path = TOP) -> tuple[Tree, list[Distribution]]:
    """The files for the image, and the packages they are from. Raises BuildError."""
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch, "site")
        _install(top, Path(scratch), site)
        found = tree.from_folder(site, "site/")
        listed = [_describe(path) for path in sorted(site.glob("*.dist-info/METADATA"))]
    excluded = tree.matcher(tree.lines(HERE / "exclude.txt"))
    kept = {SITE + name.removeprefix("site/"): entry for name, entry in found.items() if not excluded.match(name)}
    return {**kept, "usr/local/bin/metalctl": file(_COMMAND, 0o755)}, listed


def _install(top: Path, scratch: Path, site: Path) -> None:
    uv = str(top / "tools/uv")
    requirements = scratch / "requirements.txt"
    debian.run(
        uv, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--quiet",
        "--output-file", str(requirements), cwd=top,
    )  # fmt: skip
    debian.run(uv, "build", "--wheel", "--quiet", "--out-dir", str(scratch), str(top), env=_environment())
    (wheel,) = scratch.glob("*.whl")
    install = (uv, "pip", "install", "--quiet", "--target", str(site), "--no-deps", "--only-binary", ":all:", *PLATFORM)
    debian.run(*install, "--require-hashes", "--requirements", str(requirements), cwd=top)
    debian.run(*install, str(wheel), cwd=top)


def _environment() -> dict[str, str]:
    return {**os.environ, "SOURCE_DATE_EPOCH": str(tree.EPOCH)}


def _describe(metadata: Path) -> Distribution:
    told = email.parser.HeaderParser().parsestr(metadata.read_text())
    return Distribution(told["Name"], told["Version"], told["License-Expression"] or "NOASSERTION")  # PEP 639
