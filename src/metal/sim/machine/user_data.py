"""Decides by its Ignition what a booted system is: a probe, a sanitizer, or a tenant's system."""

import hashlib

from metal.sim.machine.ignition import read
from metal.sim.machine.state import OS


def operating_system(ignition: bytes | None, image: str) -> OS:
    """The system that runs from this image with this Ignition. Raises IgnitionError."""
    if ignition is None:
        return OS(kind="tenant", image=image)
    config = read(ignition)
    digest = hashlib.sha256(ignition).hexdigest()
    probe = config.probe()
    if probe is None:
        return OS(kind="tenant", image=image, ignition=digest, hostname=config.hostname)
    return OS(
        kind="sanitizer" if probe.task else "probe", image=image, ignition=digest, registry_url=probe.registry_url,
        uuid=probe.uuid, token=probe.token, task=probe.task,
    )  # fmt: skip
