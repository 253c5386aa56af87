"""Starts sushy-tools' Redfish emulator with its fake driver: an independent implementation of a BMC."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bcrypt

OFF, ON = "27946b59-9e44-4fa7-8e91-f3527a1ef094", "0f2a7d3e-4a3c-4c55-9d0e-5a4d0c3b2a10"
USER, PASSWORD = "admin", "correct horse"
DRIVE = {"Id": "d1", "Name": "disk one", "CapacityBytes": 899527000000, "Protocol": "SAS"}
STORAGE = {"Id": "1", "Name": "Local Storage Controller", "StorageControllers": [], "Drives": ["d1"]}


@dataclass(frozen=True)
class Emulator:
    """A running emulator."""

    port: int
    log: Path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def settings(folder: Path) -> dict[str, Any]:
    """Two systems, one on and one off, with a storage controller each."""
    systems = [
        {"uuid": OFF, "name": "off", "power_state": "Off", "nics": [{"mac": "02:00:00:AA:BB:01", "ip": "10.0.0.1"}]},
        {"uuid": ON, "name": "on", "power_state": "On", "nics": [{"mac": "02:00:00:AA:BB:02", "ip": "10.0.0.2"}]},
    ]
    return {
        "SUSHY_EMULATOR_STATE_DIR": str(folder),
        "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
        "SUSHY_EMULATOR_STORAGE": {uuid: [STORAGE] for uuid in (OFF, ON)},
        "SUSHY_EMULATOR_DRIVES": {(uuid, "1"): [DRIVE] for uuid in (OFF, ON)},
        "SUSHY_EMULATOR_VOLUMES": {(uuid, "1"): [] for uuid in (OFF, ON)},
    }


def password_file(folder: Path) -> Path:
    """The password file of the emulator."""
    file = folder / "passwords"
    file.write_text(f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    return file


@contextmanager
def running(folder: Path, **more: Any) -> Iterator[Emulator]:
    """The emulator on a free loopback port, its state and log in `folder`."""
    config = folder / "emulator.conf"
    config.write_text("".join(f"{name} = {value!r}\n" for name, value in (settings(folder) | more).items()))
    emulator = Emulator(_free_port(), folder / "emulator.log")
    program = [sys.executable, "-m", "sushy_tools.emulator.main", "--fake", "--config", str(config)]
    with emulator.log.open("wb") as log:
        process = subprocess.Popen(
            [*program, "-i", "127.0.0.1", "-p", str(emulator.port)], stdout=log, stderr=log, cwd=folder
        )
        try:
            _await_port(emulator, process)
            yield emulator
        finally:
            process.terminate()
            process.wait(10)


def _await_port(emulator: Emulator, process: subprocess.Popen[bytes], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", emulator.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the emulator did not start:\n{emulator.log.read_text()[-2000:]}")
