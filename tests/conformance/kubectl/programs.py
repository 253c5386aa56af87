"""Which kubectls there are on this machine."""

import os
import re
import shutil
from pathlib import Path

DEFAULT = "default"
VERSIONS = tuple(f"1.{minor}" for minor in range(27, 34))
"""Releases that have to work."""


def found() -> dict[str, Path]:
    """kubectl by name: `default` (KUBECTL, or the one on PATH), and `1.NN` for each `kubectl.1.NN` around."""
    named = os.environ.get("KUBECTL") or shutil.which("kubectl")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    if named:
        folders.append(Path(named).resolve().parent)
    versions = {
        path.name.removeprefix("kubectl."): path
        for folder in folders
        for path in folder.glob("kubectl.1.*")
        if re.fullmatch(r"kubectl\.1\.\d+", path.name) and os.access(path, os.X_OK)
    }
    ordered = dict(sorted(versions.items(), key=lambda item: int(item[0].partition(".")[2])))
    return ({DEFAULT: Path(named)} if named else {}) | ordered
