"""What is on a machine's disk: the system that boots from it, and traces of the one who used it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Installed:
    """An operating system on the disk, by digests."""

    image: str
    ignition: str


@dataclass
class DiskState:
    """All drives of a machine taken together. Data stays until somebody wipes it."""

    system: Installed | None = None
    marker: str = ""
    """Traces of the last tenant: the digest of its Ignition (of its image where it had none)."""

    def install(self, image: str, ignition: str) -> None:
        """A tenant's system installs itself and leaves data behind."""
        self.system = Installed(image, ignition)
        self.marker = ignition or image

    def wipe(self) -> None:
        """Nothing is left."""
        self.system, self.marker = None, ""
