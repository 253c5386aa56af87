"""`metalprobe sanitize`: erases every drive of this machine."""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metal.probe import connection
from metal.probe.agent import DONE, MALFORMED, REFUSED
from metal.probe.erase import drives, plan, session
from metal.probe.erase.device import Device
from metal.probe.erase.methods import CLEAR, Kit
from metal.probe.erase.runner import run
from metal.probe.erase.task import Task, read
from metal.probe.host import Host
from metal.probe.registry import Malformed, Refused

NOT_ERASED, USAGE_ERROR = 1, 2

log = logging.getLogger("metalprobe")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="metalprobe sanitize",
        description="Erase ALL drives of this machine, verify by reading back, and report to the registry.",
        epilog="Exit codes: 0 the registry accepted the result, or without one all drives are erased; 1 a drive is "
        "not; 2 invalid options; 65 task or report malformed; 75 the registry did not answer, nothing was "
        "erased; 77 token refused.",
    )
    connection.add_options(made)
    what = made.add_mutually_exclusive_group()
    what.add_argument("--task", type=Path, metavar="FILE", help="the policy and the drives of the inventory, as JSON")
    what.add_argument("--policy", choices=plan.POLICIES, help=f"without a task (default {CLEAR})")
    made.add_argument("--only", action="append", default=[], metavar="NAME", help="erase this drive alone; repeatable")
    made.add_argument(
        "--yes-erase", action="store_true", help="needed without a task: everything on the drives is lost"
    )
    made.add_argument("--dry-run", action="store_true", help="print which drive would get which methods; erase nothing")
    made.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)
    return made


def main(arguments: list[str]) -> int:
    """Runs `metalprobe sanitize` and returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        task = _task(options)
    except (ValueError, OSError) as wrong:
        log.error("%s", wrong)
        return MALFORMED
    kit = Kit(Host(options.root), run, Device, time.sleep, time.monotonic, time.time, random.SystemRandom())
    try:
        found = drives.find(kit.host, options.only)
        if options.dry_run:
            return _print(describe(kit, task, found))
        if not options.task and not options.yes_erase:
            raise ValueError(
                "--yes-erase is missing: it confirms that all drives may be erased, and is required without a task"
            )
        send = connection.registry(options).sanitized if options.registry_url else None
    except (ValueError, OSError) as wrong:
        log.error("%s", wrong)
        return USAGE_ERROR
    return erase(kit, task, found, send)


def erase(kit: Kit, task: Task, found: list[drives.Drive], send: Callable[[dict[str, Any]], None] | None) -> int:
    """Erase all drives and return an exit code. Nothing is erased until the registry has allowed it."""
    board = session.board(kit, task, found)
    reporter = session.Reporter(board, send or (lambda report: None), kit)
    if (code := reporter.confirm()) != DONE:
        log.error("nothing was erased: the registry has not allowed this run; the drives keep their data")
        return code
    try:
        session.start(kit, task, board)
        while not board.done():
            board.wait(reporter.seen, 1.0)
            reporter.progress()
    except Refused as refused:
        log.error("the registry refuses this run: %s", refused)
        return REFUSED
    except Malformed as malformed:
        log.error("%s", malformed)
        return MALFORMED
    if send:
        return reporter.final()
    _print(board.wire(done=True))
    return DONE if board.succeeded() else NOT_ERASED


def describe(kit: Kit, task: Task, found: list[drives.Drive]) -> dict[str, Any]:
    """Print the planned methods without applying them."""
    units = drives.units(found)
    return {
        "policy": task.policy,
        "drives": [_describe(kit, task, drive, unit) for unit in units for drive in unit],
        "missing": [drive.serial or drive.wwn or drive.name for drive in task.missing(found)],
    }


def _describe(kit: Kit, task: Task, drive: drives.Drive, unit: list[drives.Drive]) -> dict[str, Any]:
    offer = plan.offer(kit, unit)
    methods = plan.order(task.policy, offer.methods, unit)
    return {
        "name": drive.name,
        "paths": [drive.path, *drive.paths],
        "serialNumber": drive.serial,
        "transport": drive.transport,
        "size": drive.size,
        "methods": [{"name": each.name, "class": each.reaches, "seconds": each.estimate} for each in methods],
        "notes": [note for note in (offer.locked, offer.frozen, offer.hidden, offer.kept, *offer.notes) if note],
    }


def _task(options: argparse.Namespace) -> Task:
    if options.task:
        return read(options.task)
    return Task(options.policy or CLEAR)


def _print(told: dict[str, Any]) -> int:
    json.dump(told, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return DONE
