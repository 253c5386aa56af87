"""Options and functions with which a command connects to the API server."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from metal.api.kinds import METAL_GROUP
from metal.cli.support.options import api_group, inherited
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection, KubeconfigError, load

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT = Path(".metal") / "kubeconfig"


def connection_options(command: F) -> F:
    """Add --kubeconfig, --context and --api-group to a command."""
    command = click.option(
        "--api-group",
        callback=api_group,
        default=METAL_GROUP,
        show_default=True,
        help="API group of the kinds; other distributions use another one.",
    )(command)
    command = click.option(
        "--context",
        callback=inherited,
        default=None,
        help="Context of the kubeconfig. Defaults to its current context.",
    )(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=inherited,
        default=None,
        help="Kubeconfig file. Defaults to $KUBECONFIG, ./.metal/kubeconfig or the places that kubectl reads.",
    )(command)


def missing(kubeconfig: Path | None) -> Path | None:
    """Return the kubeconfig that `connect` would read, if it does not exist; None if it exists."""
    named = kubeconfig or Path(os.environ.get("KUBECONFIG") or DEFAULT)
    if named.exists():
        return None
    elsewhere = "KUBERNETES_SERVICE_HOST" in os.environ or (Path.home() / ".kube" / "config").exists()
    return None if elsewhere and named == DEFAULT and kubeconfig is None else named


def connect(kubeconfig: Path | None, context: str | None) -> HTTPClient:
    """Return a client for the API server. Raises click.ClickException with the way out."""
    return HTTPClient(connection(kubeconfig, context))


def connection(kubeconfig: Path | None, context: str | None) -> Connection:
    """Return the address and the credentials of the API server. Raises click.ClickException with the way out."""
    path = kubeconfig
    if path is None and not os.environ.get("KUBECONFIG") and DEFAULT.exists():
        path = DEFAULT
    try:
        return load(path, context)
    except KubeconfigError as exc:
        raise click.ClickException(f"{exc}. Start a control plane with `metalctl up`, or give --kubeconfig") from None
