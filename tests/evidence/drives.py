"""Drives, known and erased, for tests of evidence."""

from typing import Any

from metal.api.sanitization import DriveErasure, KnownDrive


def known(serial: str = "S1", **more: Any) -> KnownDrive:
    """A drive of the baseline."""
    return KnownDrive(**{"name": "sda", "serial_number": serial, "wwn": f"wwn-{serial}", "size": 1000, **more})


def erased(serial: str = "S1", **more: Any) -> DriveErasure:
    """A drive that was erased successfully."""
    return DriveErasure(
        **{
            "name": "sda", "serial_number": serial, "wwn": f"wwn-{serial}", "size": 1000, "method": "Overwrite",
            "class_": "Clear", "percent": 100, "samples_read": 8, "result": "Succeeded", **more,
        }
    )  # fmt: skip
