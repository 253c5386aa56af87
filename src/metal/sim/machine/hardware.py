"""The hardware of a simulated machine, as both its BMC and the probe report it."""

import random
from dataclasses import dataclass, replace

from metal.sim.machine.identity import Identity

GIB = 1 << 30
BIOS_VERSION = "1.4.2"
MANUFACTURER = "Simulated"
_MODELS = (("S-1000", "Xion 6326", 16, 64, 2), ("S-2000", "Xion 6338", 32, 128, 2), ("S-500", "Epoch 7313", 16, 32, 1))


@dataclass(frozen=True)
class Disk:
    """A drive of the simulated machine."""

    serial: str
    size: int
    model: str
    kind: str = "SSD"


@dataclass(frozen=True)
class Hardware:
    """Installed hardware. Sizes in bytes, memory in GiB for each module."""

    model: str
    sku: str
    cpu_model: str
    cores: int
    sockets: int
    dimm_gib: int
    dimms: int
    disks: tuple[Disk, ...]
    architecture: str = "amd64"
    """amd64 or arm64, as OCI names it."""

    @property
    def memory_gib(self) -> int:
        """Total memory."""
        return self.dimm_gib * self.dimms

    def with_arm(self) -> "Hardware":
        """The same hardware with arm64 processors."""
        return replace(self, architecture="arm64", cpu_model="Neutron N1")


def hardware(identity: Identity, rng: random.Random) -> Hardware:
    """The hardware of one of a few models."""
    model, cpu, cores, dimm, sockets = rng.choice(_MODELS)
    count = rng.choice((1, 2))
    disks = tuple(
        Disk(serial=f"{identity.serial}-D{n}", size=(480, 960)[n % 2] * 10**9, model="SimSSD 42") for n in range(count)
    )
    return Hardware(
        model=model,
        sku=f"SKU-{model[2:]}",
        cpu_model=cpu,
        cores=cores,
        sockets=sockets,
        dimm_gib=dimm // 4,
        dimms=4,
        disks=disks,
    )
