"""metalctl up: the control plane in one process, in the foreground."""

import asyncio
import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import uvloop

from metal.cli.run import logs, watchdog
from metal.cli.run.descriptors import raise_descriptor_limit
from metal.cli.run.fleet_carriers import carriers_option
from metal.cli.run.gc_settings import raise_gc_thresholds
from metal.cli.run.live_table import table
from metal.cli.run.process import started, stop_signals
from metal.cli.run.simulated_fleet import FleetOptions
from metal.cli.run.standalone import Standalone
from metal.cli.run.start_failures import EXPECTED, NotStarted, sentence
from metal.cli.support.datadir import DataDir, locked
from metal.cli.support.options import address, api_group
from metal.config import Config, ConfigError, check, load
from metal.kube.controller.tasks import Crashed
from metal.sim.bmc.http import allow_files
from metal.sim.images.registry import DEFAULT_PORT as IMAGES_PORT
from metal.sim.options import DEFAULT_PORT as BMC_PORT

_FILES = 1 << 16
"""Limit of open files to set, if permitted: each simulated BMC needs sockets, and the usual limit is 1024."""


@click.command("up")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path(".metal"), show_default=True,
    help="Folder of the stored objects, keys and images.",
)  # fmt: skip
@click.option(
    "--fleet", type=click.IntRange(0, 5000), default=0, show_default=True, help="Number of simulated servers."
)
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path, dir_okay=False), default=None,
    help="Configuration file; `metalctl config` prints one with every option.",
)  # fmt: skip
@carriers_option
@click.option("--bmc-port", type=click.IntRange(1, 65535), default=BMC_PORT, show_default=True,
              help="Port of the simulated BMCs; each has an address of its own.")  # fmt: skip
@click.option("--images-port", type=click.IntRange(1, 65535), default=IMAGES_PORT, show_default=True,
              help="Port of the registry of simulated images.")  # fmt: skip
@click.option(
    "--api-group", callback=api_group, default=None, help="API group of the kinds, such as metal.openkcm.dev."
)
@click.option(
    "--api-listen", callback=address, default=None, help="Address:port of the API. Defaults to 127.0.0.1:8443."
)
@click.option(
    "--boot-listen", callback=address, default=None, help="Address:port of the boot server. Defaults to 127.0.0.1:8082."
)
@click.option(
    "--registry-listen",
    callback=address,
    default=None,
    help="Address:port of the registry. Defaults to 127.0.0.1:10000.",
)
@click.option(
    "--metrics-listen",
    callback=address,
    default=None,
    help="Address:port of metrics and probes. Defaults to 127.0.0.1:8080.",
)
@logs.log_options
def command(
    data: Path,
    fleet: int,
    config_file: Path | None,
    api_group: str | None,
    log_format: str,
    log_level: str,
    **given: Any,
) -> None:
    """Run the control plane on this machine: embedded API, controllers, boot server and registry.

    With --fleet N, also run N simulated servers, which become Available without further steps. Ctrl-C stops it. The
    same command with the same --data continues where it stopped. While the table is shown on a terminal, log
    lines are written to the file log in --data, as JSON.

    Exit codes: 0 stopped by a signal, also during the start; 1 failed (with a message), 2 usage or configuration error,
    130 interrupted by Ctrl-C before the start.
    """
    config = _load(config_file)
    addresses = {name.removesuffix("_listen"): at for name, at in given.items() if name.endswith("_listen") and at}
    listen = dataclasses.replace(config.listen, **addresses)
    config = dataclasses.replace(config, listen=listen, api_group=api_group or config.api_group)
    if problem := check.combination_problem(config):
        raise click.UsageError(problem)
    machines = FleetOptions(fleet, given["bmc_port"], given["images_port"], given["carriers"])
    allow_files(_FILES)
    raise_gc_thresholds()
    raise_descriptor_limit()
    try:
        with locked(data) as folder:
            _hold(folder, machines, config, logs.LogOptions(log_format, log_level))
    except NotStarted as exc:
        raise click.ClickException(str(exc)) from None
    except EXPECTED as exc:
        raise click.ClickException(sentence(exc)) from None
    except Crashed as exc:
        raise click.ClickException(f"a background task ended: {exc}; the log has its traceback") from None


def _hold(folder: DataDir, fleet: FleetOptions, config: Config, options: logs.LogOptions) -> None:
    try:
        folder.keep_group(config.api_group)
        uvloop.run(_run(folder.path, fleet, config, options))
    except NotStarted:
        folder.undo()
        raise


def _load(path: Path | None) -> Config:
    try:
        return load(path)
    except ConfigError as exc:
        raise click.UsageError(str(exc)) from None


@dataclass(frozen=True)
class Screen:
    """What a person sees of a running control plane: a table on a terminal, else a greeting before the log lines."""

    interactive: bool
    logs_are_json: bool

    def echo(self, text: str) -> None:
        """Print a text; on stderr beside JSON lines, so that stdout has one object per line."""
        click.echo(text, err=self.logs_are_json and not self.interactive)

    async def show(self, plane: Standalone, stop: asyncio.Event) -> None:
        """Show the control plane until it is stopped. Raises Crashed."""
        if not self.interactive:
            self.echo(plane.greeting())
            await plane.run(stop)
            return
        with table(plane.servers, plane.greeting()):
            await plane.run(stop)


async def _run(data: Path, fleet: FleetOptions, config: Config, options: logs.LogOptions) -> None:
    stop = stop_signals()
    interactive = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    stream = logs.to_file(data / "log", options.level) if interactive else None
    if stream is None:
        logs.configure(sys.stdout, options)
    try:
        screen = Screen(interactive, logs_are_json=options.format == "json")
        await _run_until(stop, data, fleet, config, screen)
    finally:
        if stream is not None:
            stream.close()


async def _run_until(stop: asyncio.Event, data: Path, fleet: FleetOptions, config: Config, screen: Screen) -> None:
    try:
        plane = Standalone(data, config, fleet)
    except EXPECTED as exc:
        raise NotStarted(sentence(exc)) from None
    try:
        async with watchdog.watched():
            if await started(_start(plane), stop):
                await screen.show(plane, stop)
            else:
                screen.echo("interrupted during the start")
            screen.echo(f"stopping; all state is stored in {data}")
    finally:
        await plane.stop()


async def _start(plane: Standalone) -> None:
    try:
        await plane.start()
    except EXPECTED as exc:
        raise NotStarted(sentence(exc)) from None
