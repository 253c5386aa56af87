"""The command line of metalprobe."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from metal.probe import connection, report
from metal.probe.agent import DONE, Agent
from metal.probe.collectors import network
from metal.probe.erase import command
from metal.probe.host import Host
from metal.probe.listener import Listener

USAGE_ERROR = 2


def parser() -> argparse.ArgumentParser:
    """The options of a hardware report, which is the default command."""
    made = argparse.ArgumentParser(
        prog="metalprobe",
        description="Report the hardware of this machine to the registry of a metal-operator.",
        epilog="`metalprobe sanitize --help` describes the erasure of its drives. "
        "Exit codes: 0 accepted; 2 invalid options; 65 report malformed; 75 gave up; 77 token refused.",
    )
    connection.add_options(made)
    made.add_argument("--interval", type=float, default=0.0, metavar="S", help="report again every S seconds")
    made.add_argument("--once", action="store_true", help="try once and end")
    made.add_argument(
        "--deadline", type=float, default=0.0, metavar="S", help="give up after S seconds (default never)"
    )
    made.add_argument(
        "--lldp-duration", type=float, default=30.0, metavar="S", help="wait S seconds for neighbours (default 30)"
    )
    made.add_argument("--dry-run", action="store_true", help="print the report and send nothing")
    made.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs metalprobe and returns its exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="metalprobe: %(message)s")
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["sanitize"]:
        return command.main(words[1:])
    options = parser().parse_args(words)
    host = Host(options.root)
    if options.dry_run:
        json.dump(_gather(host, options.lldp_duration), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return DONE
    try:
        registry = connection.registry(options)
    except (ValueError, OSError) as wrong:
        logging.getLogger("metalprobe").error("%s", wrong)
        return USAGE_ERROR
    return Agent(
        gather=lambda: _gather(host, options.lldp_duration),
        register=registry.register,
        sleep=time.sleep,
        now=time.monotonic,
        interval=options.interval,
        deadline=options.deadline,
        once=options.once,
    ).run()


def _gather(host: Host, lldp_seconds: float) -> dict[str, Any]:
    listener = Listener(network.interfaces(host))
    try:
        return report.gather(report.collectors(host, listener, lldp_seconds))
    finally:
        listener.close()
