"""The command line of metalprobe."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from metal.probe import report
from metal.probe.agent import DONE, Agent
from metal.probe.collectors import network
from metal.probe.host import Host
from metal.probe.listener import Listener
from metal.probe.registry import Registry

USAGE_ERROR = 2


def parser() -> argparse.ArgumentParser:
    """All options; the names of the first three are those of the Go operator's probe."""
    made = argparse.ArgumentParser(
        prog="metalprobe",
        description="Report what this machine is made of to the registry of a metal-operator.",
        epilog="Exit codes: 0 taken; 2 wrong options; 65 report malformed; 75 gave up; 77 token refused.",
    )
    made.add_argument("--registry-url", metavar="URL", help="http(s)://HOST:PORT; /register is added")
    made.add_argument("--server-uuid", metavar="UUID", help="the system UUID under which the server is known")
    made.add_argument("--token", metavar="TOKEN|@FILE", help="this boot's token, better as a file that only root reads")
    made.add_argument("--token-file", metavar="FILE", type=Path, help="the same as --token @FILE")
    made.add_argument("--ca-file", metavar="FILE", help="certificates that vouch for an https registry")
    made.add_argument("--interval", type=float, default=0.0, metavar="S", help="report again every S seconds")
    made.add_argument("--once", action="store_true", help="try once and end")
    made.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds for one request (default 5)")
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
    options = parser().parse_args(arguments)
    host = Host(options.root)
    if options.dry_run:
        json.dump(_gather(host, options.lldp_duration), sys.stdout, indent=2)
        sys.stdout.write("\n")
        return DONE
    try:
        registry = _registry(options)
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


def _registry(options: argparse.Namespace) -> Registry:
    for name in ("registry_url", "server_uuid"):
        if not getattr(options, name):
            raise ValueError(f"--{name.replace('_', '-')} is missing")
    return Registry(
        options.registry_url, options.server_uuid, _token(options), timeout=options.timeout, ca_file=options.ca_file
    )


def _token(options: argparse.Namespace) -> str:
    told: str = options.token or ""
    path = options.token_file or (Path(told[1:]) if told.startswith("@") else None)
    return path.read_text().strip() if path else told
