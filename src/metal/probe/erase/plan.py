"""Which methods a drive gets, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from metal.probe.erase import ata, nvme, scsi, software
from metal.probe.erase.drives import NVME, SAS, SATA, SCSI, Drive
from metal.probe.erase.methods import CLEAR, PURGE, Kit, Method, Offer

POLICIES = (CLEAR, PURGE)
READY = {NVME: nvme.ready, SATA: ata.ready, SAS: scsi.ready, SCSI: scsi.ready}
OFFERS = {NVME: nvme.offer, SATA: ata.offer, SAS: scsi.offer, SCSI: scsi.offer}


def ready(kit: Kit, drives: Sequence[Drive]) -> None:
    """Brings drives into a state in which they can be asked and written. Best effort: what it misses, `offer` tells."""
    prepare = READY.get(drives[0].transport)
    if prepare:
        prepare(kit, drives)


def offer(kit: Kit, drives: Sequence[Drive]) -> Offer:
    """All methods of a unit, best first: what the drives themselves know, then what works with any. Changes nothing."""
    ask = OFFERS.get(drives[0].transport)
    made = ask(kit, drives) if ask else Offer(notes=["nothing is known that such a drive could do by itself"])
    made.methods += software.offer(kit, drives).methods
    return made


def order(policy: str, methods: Sequence[Method], drives: Sequence[Drive] = ()) -> list[Method]:
    """The methods as they are to be tried with these drives.

    For Purge those that purge come first. For Clear it is minutes before hours: the quick ones, again those that purge
    first, then overwriting, which shows its progress, and then what takes the drive as long. What may be a volume of a
    RAID controller is overwritten first: other commands need not reach the drives behind it.
    """
    if policy == PURGE:
        return sorted(methods, key=lambda method: method.reaches != PURGE)
    if any(drive.may_be_volume and drive.transport in (SAS, SCSI) for drive in drives):
        return sorted(methods, key=lambda method: method.name != software.OVERWRITE)

    def rank(method: Method) -> tuple[bool, bool, bool]:
        return not method.quick, method.reaches != PURGE and method.quick, method.name != software.OVERWRITE

    return sorted(methods, key=rank)
