"""Media of drives that several modules use."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.probe.erase.machine import MIB, Machine, tenant_data


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    path = tmp_path / "medium"
    path.write_bytes(tenant_data(0, 9 * MIB))
    return path


@pytest.fixture
def loop(medium: Path) -> Iterator[Path]:
    """A loop device, where this machine allows one."""
    if os.geteuid() or not shutil.which("losetup"):
        pytest.skip("loop devices need root")
    made = subprocess.run(["losetup", "--find", "--show", str(medium)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    yield Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "root")
