"""metalctl manager: controllers, boot server and registry for a Kubernetes cluster."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
import structlog
import uvloop
from prometheus_client import CollectorRegistry

from metal.bmc.redfish.pool import RedfishPool
from metal.cli.run import logs, watchdog
from metal.cli.run.descriptors import raise_descriptor_limit
from metal.cli.run.gc_settings import raise_gc_thresholds
from metal.cli.run.process import candidate, started, stop_signals
from metal.cli.support.datadir import Unusable, locked
from metal.cli.support.options import inherited
from metal.config import Config, ConfigError, load
from metal.controllers.endpoint.mac_prefixes import PrefixError
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.kube.client import kubeconfig as kube
from metal.kube.client.errors import (
    ApiError,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from metal.kube.client.http import HTTPClient
from metal.kube.controller.election import Elector
from metal.kube.controller.metrics import ClientMetrics
from metal.kube.controller.tasks import Crashed
from metal.manager import Manager, Parts

_log = structlog.get_logger("metal")
_RETRY = 2.0
"""Seconds between attempts to reach an API server that does not answer at the start."""
_CONNECTIONS = 100
"""Maximum number of concurrent requests to the API server."""
_FILE = click.Path(path_type=Path, dir_okay=False)
_T = TypeVar("_T")


@click.command("manager")
@click.option("--kubeconfig", type=_FILE, callback=inherited, help="Kubeconfig file. Defaults to $KUBECONFIG, the "
              "pod's service account or ~/.kube/config.")  # fmt: skip
@click.option("--context", callback=inherited, help="Context of the kubeconfig. Defaults to its current context.")
@click.option("--config", "config_file", type=_FILE,
              help="Configuration file; `metalctl config` prints one with every option.")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=Path(".metal"), show_default=True,
              help="Folder of the image cache. Its content can be deleted.")  # fmt: skip
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True,
              help="Elect one of several managers by a Lease. Without it, run only one manager.")  # fmt: skip
@logs.log_options
def command(
    kubeconfig: Path | None, context: str | None, config_file: Path | None, data: Path, leader_elect: bool,
    log_format: str, log_level: str,
) -> None:  # fmt: skip
    """Run controllers, boot server and registry against a Kubernetes cluster.

    \b
    Prepare the namespace, the CRDs and the permissions first:
      kubectl create namespace metal-system
      kubectl apply -f config/crd -f config/rbac

    Several managers can run: boot server and registry serve in each, the controllers run in the one that holds the
    Lease election.lease of the configuration. /livez, /readyz and /metrics are served on listen.metrics. On SIGTERM,
    work in progress ends and the Lease is released, so that another manager takes over at once.

    Exit codes: 0 stopped by a signal, 1 failed (with a message), 2 usage or configuration error.
    """
    config = _usable(lambda: load(config_file))
    connection = _usable(lambda: kube.load(kubeconfig, context))
    logs.configure(sys.stdout, logs.LogOptions(log_format, log_level))
    raise_gc_thresholds()
    raise_descriptor_limit()
    try:
        with locked(data) as folder:
            uvloop.run(_run(config, connection, folder.path / "images", elect=leader_elect))
    except (ApiError, Crashed, OSError, PrefixError, Unusable) as exc:
        raise click.ClickException(sentence(exc)) from None


def _usable(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except (ConfigError, kube.KubeconfigError) as exc:
        raise click.UsageError(str(exc)) from None


def sentence(exc: Exception) -> str:
    """Return why the manager ended, with the way out."""
    if isinstance(exc, Forbidden):
        return f"{exc.message}; grant the permissions of config/rbac: kubectl apply -f config/rbac"
    if isinstance(exc, NotFound):
        return f"{exc.message}; the CRDs are missing: kubectl apply -f config/crd"
    if isinstance(exc, Unauthorized):
        return f"the API server rejected the credentials ({exc.message}); check the kubeconfig or the service account"
    if isinstance(exc, OSError) and exc.filename:
        return f"{exc.filename}: {exc.strerror}; grant this user access, or choose another --data"
    if isinstance(exc, OSError):
        return f"{exc.strerror or exc}; change listen in the configuration"
    return str(exc)


async def _run(config: Config, connection: kube.Connection, cache: Path, *, elect: bool) -> None:
    stop = stop_signals()
    registry = CollectorRegistry()
    observe = ClientMetrics(registry).observe
    client = HTTPClient(connection, max_connections=_CONNECTIONS, user_agent="metal-operator", observer=observe)
    lease_client = HTTPClient(
        connection, total=config.election.renew_deadline / 2, user_agent="metal-operator-election", observer=observe
    )
    try:
        async with watchdog.watched():
            elector = candidate(config, lease_client) if elect else None
            await _serve(_manager(config, client, cache, elector, registry), config, stop)
    finally:
        await lease_client.aclose()
        await client.aclose()


def _manager(
    config: Config, client: HTTPClient, cache: Path, elector: Elector | None, registry: CollectorRegistry
) -> Manager:
    permit = elector.require if elector else lambda: None
    pool = RedfishPool(permit=permit, registry=registry, silent_budget=config.silent_budget)
    prefixes = PrefixFile(Path(config.mac_prefixes_file) if config.mac_prefixes_file else None)
    return Manager(Parts(client, pool, config, prefixes, cache, registry=registry, elector=elector))


async def _serve(manager: Manager, config: Config, stop: asyncio.Event) -> None:
    try:
        await manager.listen()
        if await started(_start_with_retry(manager), stop):
            _log.info("manager is up", role=manager.role, pid=os.getpid(), boot=config.boot_url)
            await manager.run(stop)
            _log.info("stopping", role=manager.role)
    finally:
        await manager.stop(grace=config.election.drain)


async def _start_with_retry(manager: Manager) -> None:
    while True:
        try:
            await manager.start()
        except (Unavailable, ServerError, TooManyRequests) as exc:
            _log.warning("API server does not answer yet", error=exc.message)
            await asyncio.sleep(_RETRY)
        else:
            return
