"""Butane in the manager's image: the program that `tools/butane` builds, the modules in it and their licences."""

from pathlib import Path

from images import debian, tree
from images.manager.python import TOP, Distribution
from images.tree import Tree, file

_LICENCES = "usr/share/doc/butane/"


def build(top: Path = TOP) -> Path:
    """The folder with what was built. Raises BuildError."""
    return Path(debian.run(str(top / "tools/butane"), "--build").strip()).parent


def contents(built: Path) -> tuple[Tree, list[Distribution]]:
    """The files for the image, and the Go modules that they are from."""
    found = tree.from_folder(built / "licences", _LICENCES)
    found["usr/local/bin/butane"] = file((built / "butane").read_bytes(), 0o755)
    listed = [line.split() for line in (built / "modules").read_text().splitlines()]
    return found, [Distribution(name, version, "NOASSERTION") for name, version in listed]
