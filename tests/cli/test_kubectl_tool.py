"""tools/kubectl builds kubectl inside the checkout if the machine has none."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "kubectl"
OLD = """#!/bin/sh
echo '{"clientVersion": {"major": "1", "minor": "20"}}'
"""
GO = """#!/bin/sh
# `go get` and `go build -o FILE .`: notes where Go would write, and makes a kubectl that is new enough.
env > "$NOTES"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then printf '#!/bin/sh\\necho "  \\\\"minor\\\\": \\\\"33\\\\""\\n' > "$2"; chmod +x "$2"; fi
  shift
done
"""


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("settings", [False, True])
def test_what_go_writes_stays_below_the_checkout(settings: bool, tmp_path: Path) -> None:
    """Modules, builds and counters are below the checkout; settings of `go env -w` are respected."""
    checkout, programs, home = tmp_path / "checkout", tmp_path / "bin", tmp_path / "home"
    (checkout / "tools").mkdir(parents=True)
    shutil.copy(TOOL, checkout / "tools" / "kubectl")
    _program(programs / "kubectl", OLD)
    _program(programs / "go", GO)
    theirs = home / ".config" / "go" / "env"
    theirs.parent.mkdir(parents=True)
    if settings:
        theirs.write_text("GOPROXY=https://proxy.example\n")
    environment = {"PATH": f"{programs}:{os.defpath}", "HOME": str(home), "NOTES": str(tmp_path / "notes")}
    done = subprocess.run(
        [checkout / "tools" / "kubectl"], env=environment, capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout.strip() == str(checkout / ".cache/kubectl/v0.33.6/kubectl")
    noted = dict(line.partition("=")[::2] for line in (tmp_path / "notes").read_text().splitlines())
    for name in ("GOPATH", "GOMODCACHE", "GOCACHE", "XDG_CONFIG_HOME"):
        assert Path(noted[name]).is_relative_to(checkout / ".cache"), name
    assert noted.get("GOENV") == (str(theirs) if settings else None)
