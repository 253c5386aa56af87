"""Parked: a state of the Go operator that this one does not have yet. It is left only when somebody says so."""

from collections.abc import Mapping

from metal.controllers.server.scope import Scope
from metal.kube.controller import Requeue

WAITS: Mapping[str, str] = {}


async def run(scope: Scope) -> Requeue:
    """Error with the way out; the machine is not touched."""
    return scope.fail(
        "ParkedNotSupported",
        "another operator parked this server, and parking is not supported here. It is managed again when you say so",
    )
