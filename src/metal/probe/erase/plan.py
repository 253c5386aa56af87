"""The methods for a unit of drives, and their order.

Each bus (`nvme`, `ata`, `scsi`) offers the methods that its drives support; `software` adds discards and overwriting,
which work with any drive. The order depends on the policy: for Purge, methods of that class first; for Clear, fast
methods first. `worker` tries them in this order until one is verified.
"""

from __future__ import annotations

from collections.abc import Sequence

from metal.probe.erase import ata, nvme, scsi, software
from metal.probe.erase.drives import NVME, SAS, SATA, SCSI, Drive
from metal.probe.erase.methods import CLEAR, PURGE, Kit, Method, Offer

POLICIES = (CLEAR, PURGE)
READY = {NVME: nvme.ready, SATA: ata.ready, SAS: scsi.ready, SCSI: scsi.ready}
OFFERS = {NVME: nvme.offer, SATA: ata.offer, SAS: scsi.offer, SCSI: scsi.offer}


def ready(kit: Kit, drives: Sequence[Drive]) -> None:
    """Bring drives into a state in which they accept commands. Best effort; `offer` reports what failed."""
    prepare = READY.get(drives[0].transport)
    if prepare:
        prepare(kit, drives)


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """All methods of a unit, best first: those of the drives, then those of `software`. Changes nothing."""
    ask = OFFERS.get(drives[0].transport)
    made = ask(kit, drives) if ask else Offer(notes=["no erase command is known for this kind of drive"])
    made.methods += software.offer(kit, drives).methods
    return made


def order(policy: str, methods: Sequence[Method], drives: Sequence[Drive] = ()) -> list[Method]:
    """The methods in the order in which they are to be tried.

    For Purge, methods of that class come first. For Clear, methods that take minutes come first (of these, Purge before
    Clear), then overwriting, which reports its progress, then slower methods. A possible volume of a RAID controller is
    overwritten first, because other commands may not reach the drives behind it.
    """
    if policy == PURGE:
        return sorted(methods, key=lambda method: method.reaches != PURGE)
    if any(drive.may_be_volume and drive.transport in (SAS, SCSI) for drive in drives):
        return sorted(methods, key=lambda method: method.name != software.OVERWRITE)

    def rank(method: Method) -> tuple[bool, bool, bool]:
        return not method.quick, method.reaches != PURGE and method.quick, method.name != software.OVERWRITE

    return sorted(methods, key=rank)
