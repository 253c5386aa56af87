"""How a command reaches the control plane: options that all of them share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from metal.api.kinds import METAL_GROUP
from metal.cli.support.options import api_group
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection, KubeconfigError, load

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT = Path(".metal") / "kubeconfig"


def connection_options(command: F) -> F:
    """Adds --kubeconfig, --context and --api-group."""
    command = click.option(
        "--api-group",
        callback=api_group,
        default=METAL_GROUP,
        show_default=True,
        help="API group of the kinds, for other distributions.",
    )(command)
    command = click.option("--context", default=None, help="Context of the kubeconfig; its current one by default.")(
        command
    )
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        help="Kubeconfig file; else $KUBECONFIG, else ./.metal/kubeconfig, else the usual places.",
    )(command)


def missing(kubeconfig: Path | None) -> Path | None:
    """The file that `connect` would read or, without other places, that `metalctl up` writes; None when it is there."""
    named = kubeconfig or Path(os.environ.get("KUBECONFIG") or DEFAULT)
    if named.exists():
        return None
    elsewhere = "KUBERNETES_SERVICE_HOST" in os.environ or (Path.home() / ".kube" / "config").exists()
    return None if elsewhere and named == DEFAULT and kubeconfig is None else named


def connect(kubeconfig: Path | None, context: str | None) -> HTTPClient:
    """A client for the control plane. Raises click.ClickException with a way out."""
    return HTTPClient(connection(kubeconfig, context))


def connection(kubeconfig: Path | None, context: str | None) -> Connection:
    """How to reach the control plane. Raises click.ClickException with a way out."""
    path = kubeconfig
    if path is None and not os.environ.get("KUBECONFIG") and DEFAULT.exists():
        path = DEFAULT
    try:
        return load(path, context)
    except KubeconfigError as exc:
        raise click.ClickException(f"{exc}. Start a control plane with `metalctl up`, or give --kubeconfig") from None
