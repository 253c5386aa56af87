"""Erases the drives of one unit.

Mounts and other users of the drives are removed first, and both ends of each drive are zeroed, so that nothing boots
from it if the run is interrupted. Then the methods of the plan are tried in order: each is applied with a deadline and
verified by reading back (`samples`) through every path. The first verified method of sufficient class ends the work;
a weaker one is kept as the best result, and its record says what the policy still requires. Every failure becomes the
result of its drive, never an exception of the thread.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from metal.probe.erase import device, holders, plan
from metal.probe.erase.board import FAILED, LOCKED, READ_ONLY, RUNNING, SUCCEEDED, Board, Record
from metal.probe.erase.device import Device
from metal.probe.erase.drives import Drive
from metal.probe.erase.methods import PURGE, Blocked, Kit, Method, MethodFailed, Offer, RunningMethod
from metal.probe.erase.runner import ToolFailed
from metal.probe.erase.samples import Finding, Samples, places

EDGE = 16 * 1024 * 1024
"""Bytes at both ends of a drive that hold the signatures of partition tables, file systems and RAID metadata."""
PROTECTED = (errno.EROFS, errno.EACCES, errno.EPERM)
ATTEMPTS = 10
"""Attempts, a second apart, to open a drive that udev may have open."""

log = logging.getLogger("metalprobe")


@dataclass
class Worker:
    """One unit's erasure, for a thread of its own."""

    kit: Kit
    board: Board
    records: Sequence[Record]
    policy: str
    chance: random.Random = field(repr=False)
    _samples: dict[str, Samples] = field(default_factory=dict, repr=False)
    _busy: list[str] = field(default_factory=list)

    @property
    def drives(self) -> list[Drive]:
        """The unit."""
        return [record.drive for record in self.records]

    def run(self) -> None:
        """Erase; every drive has a result afterwards."""
        self._tell(result=RUNNING, started=self.kit.wall())
        try:
            self._erase()
        except Blocked as blocked:
            self._end(blocked.result, str(blocked))
        except Exception as failure:  # drives fail in unforeseen ways, and each failure must be reported
            log.exception("%s", self._names())
            self._end(FAILED, f"the erasure was interrupted: {_words(failure)}")

    def _erase(self) -> None:
        for drive in self.drives:
            self._busy += holders.release(self.kit.host, self.kit.run, drive)
        plan.ready(self.kit, self.drives)
        offer = plan.offer(self.kit, self.drives)
        if offer.locked:
            raise Blocked(LOCKED, offer.locked)
        for drive in self.drives:
            self._prepare(drive)
        tried: list[str] = []
        for method in plan.order(self.policy, offer.methods, self.drives):
            failure = self._attempt(method)
            if not failure:
                return self._finish(method, offer, tried)
            log.warning("%s: %s: %s", self._names(), method.name, failure)
            tried.append(f"{method.name}: {failure}")
        self._end(FAILED, "no method erased the drive; " + "; ".join([*tried, *offer.notes]))
        return None

    def _prepare(self, drive: Drive) -> None:
        """Keep digests of the content, and zero both ends so that nothing boots from an interrupted erasure."""
        protected = f"/sys/block/{drive.name}"
        if self.kit.host.number(f"{protected}/force_ro"):
            self._unprotect(drive)
        if self.kit.host.number(f"{protected}/ro"):
            device.make_writable(self.kit.host.path(drive.path))
            if self.kit.host.number(f"{protected}/ro"):
                raise Blocked(READ_ONLY, "the drive is write-protected; remove the write protection or the drive")
        with self._open(drive) as opened:
            if opened.opal_locked():
                raise Blocked(LOCKED, "TCG Opal locks the drive; revert it with the PSID on its label, or replace it")
            drive.size = opened.size()
            samples = Samples(places(drive.size, self.chance), self.chance)
            samples.remember(opened)
            self._samples[drive.name] = samples
            with contextlib.suppress(OSError):  # a drive with bad sectors may still erase itself
                _wipe(opened)

    def _unprotect(self, drive: Drive) -> None:
        try:
            self.kit.host.put(f"/sys/block/{drive.name}/force_ro", "0")
        except OSError as failure:
            raise Blocked(READ_ONLY, f"the boot partition is write-protected: {_words(failure)}") from failure

    def _open(self, drive: Drive) -> Device:
        for _ in range(ATTEMPTS):
            try:
                return self.kit.device(drive.path)
            except OSError as failure:
                if failure.errno in PROTECTED:
                    raise Blocked(READ_ONLY, f"writes to the drive fail: {_words(failure)}") from failure
                if failure.errno != errno.EBUSY:
                    raise
            self.kit.sleep(1)
        raise Blocked(FAILED, "; ".join(["the drive is in use, and could not be freed", *self._busy]))

    def _attempt(self, method: Method) -> str:
        """Apply a method and verify it; returns a sentence when it failed."""
        log.info("%s: %s", self._names(), method.name)
        self._tell(method=method.name, percent=0.0, seconds_left=method.estimate, samples_read=0, samples_differ=0)
        try:
            for drive in self.drives:
                self._mark(drive)
            method.apply(RunningMethod(self.kit, method.deadline, self._progress))
            return self._prove(method) or self._clean_ends()
        except (MethodFailed, ToolFailed, OSError) as failure:
            return _words(failure)

    def _mark(self, drive: Drive) -> None:
        samples = self._samples[drive.name]
        with self._open(drive) as opened:
            try:
                samples.mark(opened)
            except OSError as failure:
                if failure.errno in PROTECTED:
                    raise Blocked(READ_ONLY, f"writes to the drive fail: {_words(failure)}") from failure
                log.warning(
                    "no marker can be written to %s, verification relies on the previous content alone: %s",
                    drive.name,
                    failure,
                )
                return
            if samples.swallowed(opened):
                raise Blocked(READ_ONLY, "the drive reports successful writes but does not store them")
        for path in drive.paths:
            with self.kit.device(path) as second:
                if not samples.marked(second):
                    raise Blocked(FAILED, f"{path} has the names of {drive.path} and leads to another drive")

    def _progress(self, percent: float, seconds_left: float | None) -> None:
        fields = {} if seconds_left is None else {"seconds_left": seconds_left}
        self._tell(percent=min(percent, 99.0), **fields)

    def _prove(self, method: Method) -> str:
        """Read back through every path; returns a sentence when data is left."""
        sentences = []
        for record in self.records:
            findings = [self._look(record.drive, path, method) for path in (record.drive.path, *record.drive.paths)]
            worst = max(findings, key=lambda finding: finding.differ)
            self.board.update(record, samples_read=worst.read, samples_differ=worst.differ)
            if worst.differ:
                sentences.append(f"{worst.differ} of {worst.read} samples are not erased: {worst.sentence}")
        return "; ".join(sentences)

    def _look(self, drive: Drive, path: str, method: Method) -> Finding:
        with self._open(drive) if path == drive.path else self.kit.device(path) as opened:
            opened.flush()
            return self._samples[drive.name].check(opened, method.promise, unreadable=method.unreadable)

    def _clean_ends(self) -> str:
        """Zero both ends, because random bytes after a cryptographic erase could look like a signature."""
        for drive in self.drives:
            with self._open(drive) as opened:
                _wipe(opened)
                opened.reread_partitions()
        return ""

    def _finish(self, method: Method, offer: Offer, tried: Sequence[str]) -> None:
        owed = self._owed(method, offer)
        result = SUCCEEDED if not owed else LOCKED if method.reaches != PURGE and offer.frozen else FAILED
        hidden = "" if method.whole else offer.hidden
        why = [*tried, *offer.notes] if self.policy == PURGE or tried else []
        parts = dict.fromkeys(part for part in (owed, hidden, *why) if part)
        self._end(result, "; ".join(parts), reached=method.reaches)

    def _owed(self, method: Method, offer: Offer) -> str:
        """What the policy still requires after a verified method."""
        if offer.kept and not method.whole:
            return offer.kept
        if self.policy != PURGE:
            return ""
        if method.reaches != PURGE:
            purging = any(each.reaches == PURGE for each in offer.methods)
            why = offer.frozen or ("the Purge methods failed" if purging else "the drive supports no Purge method")
            return f"the policy requires Purge, but the best method that succeeded is {method.name}: {why}"
        return "" if method.whole else offer.hidden

    def _end(self, result: str, message: str, reached: str = "") -> None:
        done = {"percent": 100.0} if result == SUCCEEDED else {}
        self._tell(result=result, message=message, reached=reached, ended=self.kit.wall(), seconds_left=None, **done)
        log.info("%s: %s %s", self._names(), result, message)

    def _tell(self, **fields: object) -> None:
        for record in self.records:
            self.board.update(record, **fields)

    def _names(self) -> str:
        return ", ".join(drive.name for drive in self.drives)


def _wipe(opened: Device) -> None:
    """Zero both ends of a drive, which hold signatures."""
    size = opened.size()
    edge = min(EDGE, size)
    opened.zero(0, edge)
    opened.zero(size - edge, edge)
    opened.flush()


def _words(failure: Exception) -> str:
    return str(failure) or type(failure).__name__
