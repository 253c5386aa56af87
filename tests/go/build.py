"""Builds a Go program of these tests once; what was built is kept outside the checkout."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

BUILD_SECONDS = 900
"""The first build compiles client-go; two busy cores take some minutes."""


def cache() -> Path:
    """The folder that tools/kube uses, too: METAL_CACHE, else XDG_CACHE_HOME/metal-operator."""
    base = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/root")) / ".cache"
    return Path(os.environ.get("METAL_CACHE") or Path(base) / "metal-operator")


def built(name: str) -> Path:
    """Path of the program in folder `name`. Raises CalledProcessError with Go's words on stderr."""
    sources = Path(__file__).parent / name
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources.iterdir())))
    target = cache() / "go" / f"{name}-{digest.hexdigest()[:12]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            beside = Path(folder) / name
            # As tools/kube builds, so that what it compiled of client-go is used again.
            command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(beside), "."]
            environment = os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false"}
            subprocess.run(command, cwd=sources, env=environment, check=True, timeout=BUILD_SECONDS)
            beside.replace(target)
    return target
