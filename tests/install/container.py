"""Runs the manager's image as a pod would: its own root, read-only, nobody's user, without new privileges."""

import json
import os
import signal
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from images.manager import build

READY_WITHIN = 60.0
"""Seconds; a loaded machine needs five for the imports alone."""
_ENTER = """
set -e
root=$1 account=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for folder in dev run; do mount -t tmpfs none "$root/$folder"; done
for folder in data tmp; do mount -t tmpfs -o uid=65532,gid=65532,mode=0700 none "$root/$folder"; done
for device in null zero urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir -p "$root/run/secrets/kubernetes.io"
cp -r "$account" "$root/run/secrets/kubernetes.io/serviceaccount"
mount -o remount,ro,bind "$root"
exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" "$@"
"""


def image_config(layout: Path) -> dict[str, Any]:
    """What the image says of itself: user, command, labels."""
    _, manifest, _ = build.manifest(layout)
    described: Any = manifest["config"]
    loaded: dict[str, Any] = json.loads((layout / "blobs" / described["digest"].replace(":", "/")).read_text())
    return loaded


def unpack(layout: Path, root: Path) -> None:
    """The image's files, with their owners."""
    _, manifest, _ = build.manifest(layout)
    layers: Any = manifest["layers"]
    for layer in layers:
        with tarfile.open(layout / "blobs" / layer["digest"].replace(":", "/")) as archive:
            archive.extractall(root, numeric_owner=True, filter="fully_trusted")  # noqa: S202 - an image of our own


def put(root: Path, name: str, text: str) -> None:
    """A file that a volume would bring."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Container:
    """One process in the image. `account` is the folder that a pod has as its service account."""

    def __init__(self, root: Path, account: Path, environment: dict[str, str], *command: str) -> None:
        enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "enter", str(root), str(account)]
        given = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", **environment}
        self.log = root.parent / "log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen([*enter, *command], env=given, stdout=log, stderr=log)

    def wait(self, seconds: float) -> int:
        """The exit code. Raises TimeoutExpired."""
        return self._process.wait(seconds)

    def terminate(self) -> None:
        """SIGTERM, as the kubelet sends it."""
        self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Nothing stays, whatever the test did."""
        self._process.kill()
        self._process.wait()

    def answered(self, url: str, wanted: str) -> str:
        """The answer, once it is the wanted one. Fails with the log."""
        deadline = time.monotonic() + READY_WITHIN
        told = ""
        while time.monotonic() < deadline and self._process.poll() is None:
            told = _ask(url)
            if told == wanted:
                return told
            time.sleep(0.1)
        raise AssertionError(f"{url} answered {told!r}, not {wanted!r}; the log:\n{self.log.read_text()}")


def _ask(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - loopback
            text: str = answer.read().decode()
            return text
    except urllib.error.HTTPError as refused:
        with refused:
            return f"{refused.code}"
    except OSError as away:
        return str(away)
