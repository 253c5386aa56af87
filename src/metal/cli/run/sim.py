"""metalctl sim: simulated BMCs and machines for a control plane in another process on this machine."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import click
import structlog
import uvloop

from metal.api.kinds import kinds
from metal.cli.run import logs
from metal.cli.run.fleet_carriers import carriers_option
from metal.cli.run.gc_settings import raise_gc_thresholds
from metal.cli.support.connection import connect, connection_options, missing
from metal.kube.client.errors import ApiError, NotFound
from metal.kube.client.protocol import Client
from metal.sim import faults
from metal.sim.images.registry import DEFAULT_PORT as IMAGES_PORT
from metal.sim.images.registry import ImageRegistry
from metal.sim.machine.store import Unreadable
from metal.sim.options import DEFAULT_PORT, Options
from metal.sim.sites.fleet import Fleet, FleetSettings

_log = structlog.get_logger("metal.sim")
_RETRY = 2.0
_OPTIONS = Options()


def _fault(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, int]]:
    found = []
    for value in values:
        name, _equals, count = value.partition("=")
        if name not in faults.NAMES or not (count or "1").isdecimal():
            names = ", ".join(faults.NAMES)
            raise click.BadParameter(f"{value!r}: write NAME=COUNT with one of {names}", param=parameter)
        found.append((name, int(count or "1")))
    return found


@click.command("sim")
@click.option("-n", "count", type=click.IntRange(1, 5000), default=8, show_default=True, help="Number of machines.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated machines.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Number of the first machine.")
@click.option("--latency", type=click.FloatRange(0), default=0.0, show_default=True,
              help="Median response time of a BMC in milliseconds.")  # fmt: skip
@click.option(
    "--power", type=click.FloatRange(0), default=_OPTIONS.power, show_default=True, help="Seconds of a power change."
)
@click.option("--boot", type=click.FloatRange(0), default=_OPTIONS.boot, show_default=True, help="Seconds of a boot.")
@click.option("--arm64", type=click.IntRange(0), default=0, show_default=True,
              help="Number of machines with arm64 processors.")  # fmt: skip
@click.option(
    "--fault", "wanted", multiple=True, callback=_fault, metavar="NAME=COUNT",
    help=f"Machines with a fault: {', '.join(faults.NAMES)}.",
)  # fmt: skip
@carriers_option
@click.option(
    "--scheme", type=click.Choice(["http", "https"]), default="http", show_default=True, help="URL scheme of BMCs."
)
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True, help="Port of BMCs.")
@click.option("--images-port", type=click.IntRange(0, 65535), default=IMAGES_PORT, show_default=True,
              help="Port of the registry of simulated images.")  # fmt: skip
@click.option(
    "--boot-url", default="http://127.0.0.1:8082", show_default=True, help="URL of the boot server, as in DHCP."
)
@click.option("--state", type=click.Path(path_type=Path, dir_okay=False), help="File with the state of the machines.")
@click.option("--write-mac-prefixes", "prefixes", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the MAC prefix file of the control plane to this file instead of printing it.")  # fmt: skip
@click.option(
    "--write-ca", "ca", type=click.Path(path_type=Path, dir_okay=False),
    help="With --scheme https: write the authority of the BMCs' certificate to this file (bmc.caFile).",
)  # fmt: skip
@logs.log_options
@connection_options
def command(count: int, seed: int, offset: int, wanted: list[tuple[str, int]], **given: Any) -> None:
    """Run simulated BMCs and machines for a control plane on this machine.

    The control plane needs their MAC prefix (macPrefixesFile), a probe image (probeImage) and its registry
    (registries.insecure): all three are printed. BMCs get their leases when the control plane answers.
    """
    settings = FleetSettings(boot_url=given["boot_url"].rstrip("/"), offset=offset)
    options = Options(
        power=given["power"], boot=given["boot"], latency=given["latency"] / 1000, scheme=given["scheme"],
        port=given["port"], carriers=given["carriers"], arm64=given["arm64"],
    )  # fmt: skip
    try:
        fleet = Fleet(count, seed=seed, options=options, settings=settings)
        for name, number in wanted:
            fleet.inject(name, number)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from None
    logs.configure(sys.stdout, logs.LogOptions(given["log_format"], given["log_level"]))
    try:
        raise_gc_thresholds()
        uvloop.run(_run(fleet, given))
    except OSError as exc:
        raise click.ClickException(f"{exc.strerror}; choose another --offset, --port or --images-port") from None
    except Unreadable as exc:
        raise click.ClickException(str(exc)) from None


async def _run(fleet: Fleet, given: dict[str, Any]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    images = ImageRegistry(port=given["images_port"])
    if given["state"]:
        fleet.load(given["state"])
    try:
        await images.start()
        await fleet.serve()
        _introduce(fleet, images, given["prefixes"], given["ca"])
        await fleet.start()
        await _until_stopped(fleet, given, stop)
    finally:
        await fleet.stop()
        await images.stop()
        if given["state"]:
            fleet.save(given["state"])


def _introduce(fleet: Fleet, images: ImageRegistry, prefixes: Path | None, ca: Path | None) -> None:
    trusted = f"bmc:\n  caFile: {ca}\n" if ca is not None and fleet.ca_pem else ""
    if ca is not None and trusted:
        ca.write_text(fleet.ca_pem)
    entry = fleet.mac_prefixes_yaml()
    if prefixes is not None:
        prefixes.write_text(entry)
        entry = f"macPrefixesFile: {prefixes}\n"
    click.echo(
        f"# {len(fleet.machines)} machines; required configuration of the control plane:\n"
        f'probeImage: {images.probe_image}\nregistries:\n  insecure: ["{images.name}"]\n{trusted}'
        f"{'' if prefixes else '# and its MAC prefix file:'}\n{entry}"
    )


async def _until_stopped(fleet: Fleet, given: dict[str, Any], stop: asyncio.Event) -> None:
    announcing = asyncio.create_task(_report(fleet, given, stop), name="announce")
    waiting = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait({announcing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if announcing in done:
            announcing.result()
    finally:
        for task in (announcing, waiting):
            task.cancel()
        await asyncio.gather(announcing, waiting, return_exceptions=True)


async def _report(fleet: Fleet, given: dict[str, Any], stop: asyncio.Event) -> None:
    await _kubeconfig_there(given["kubeconfig"])
    client = connect(given["kubeconfig"], given["context"])
    try:
        await _announce(fleet, client, given["api_group"])
        await stop.wait()  # this client renews leases and reports those of hosts
    finally:
        await client.aclose()


async def _kubeconfig_there(given: Path | None) -> None:
    """Wait until the control plane has written the kubeconfig."""
    logged = False
    while (path := missing(given)) is not None:
        if not logged:
            _log.info("waiting for the kubeconfig: start the control plane", file=str(path))
            logged = True
        await asyncio.sleep(_RETRY)


async def _announce(fleet: Fleet, client: Client, group: str) -> None:
    """Wait until the control plane has recorded every lease."""
    while True:
        try:
            await fleet.announce(client, kinds(group))
        except NotFound:
            _log.warning("API server has no kinds of this group yet; set --api-group for another one", group=group)
        except ApiError as exc:
            _log.warning("the control plane does not answer yet", error=str(exc))
        else:
            _log.info("every BMC has a lease", machines=len(fleet.machines))
            return
        await asyncio.sleep(_RETRY)
