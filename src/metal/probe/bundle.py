"""Packs the probe into one file that any Python 3.9+ runs: `python3 metalprobe.pyz` (PEP 441)."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

SHEBANG = b"#!/usr/bin/env python3\n"
MAIN = "import sys\n\nfrom metal.probe.cli import main\n\nsys.exit(main())\n"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip archive can name."""
HERE = Path(__file__).resolve().parent


def zipapp() -> bytes:
    """The archive: the same sources give the same bytes."""
    packed = io.BytesIO()
    packed.write(SHEBANG)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(_sources().items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, source)
    return packed.getvalue()


def _sources() -> dict[str, str]:
    mine = [path for path in HERE.rglob("*.py") if path.name != "bundle.py"]
    found = {"metal/probe/" + path.relative_to(HERE).as_posix(): path.read_text(encoding="utf-8") for path in mine}
    return {"__main__.py": MAIN, "metal/__init__.py": "", **found}
