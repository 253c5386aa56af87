"""Lists BMCs and Endpoints that have no Server yet, with the reason."""

from collections.abc import Iterable, Sequence

from metal.api.bmc import BMC
from metal.api.endpoint import Endpoint
from metal.api.meta import Condition
from metal.api.server import Server
from metal.cli.support.table import printable

MOST = 5
"""Maximum number of objects that are named."""


def unenrolled(bmcs: Iterable[BMC], endpoints: Iterable[Endpoint], servers: Iterable[Server]) -> list[str]:
    """Return lines for BMCs without a Server and for Endpoints without a BMC."""
    managed = {server.spec.bmc_ref.name for server in servers if server.spec.bmc_ref}
    alone = {
        bmc.metadata.name: _reason(bmc.status.waiting_for, bmc.status.state, bmc.status.conditions)
        for bmc in bmcs
        if bmc.metadata.name not in managed
    }
    unknown = {
        endpoint.metadata.name: _reason(endpoint.status.waiting_for, endpoint.status.state, endpoint.status.conditions)
        for endpoint in endpoints
        if endpoint.status.state not in ("Ready", "Ignored")
    }
    lines = _lines(alone, ("BMC has", "BMCs have"), "server", "bmcs")
    return lines + _lines(unknown, ("Endpoint has", "Endpoints have"), "BMC", "mep")


def _reason(waiting_for: str, state: str, conditions: Sequence[Condition]) -> str:
    unmet = (condition.message for condition in conditions if condition.status != "True" and condition.message)
    return waiting_for or next(unmet, "") or f"state {state or 'Pending'}"


def _lines(found: dict[str, str], having: tuple[str, str], what: str, plural: str) -> list[str]:
    if not found:
        return []
    lines = [f"{len(found)} {having[len(found) > 1]} no {what} yet: kubectl get {plural}"]
    lines += [f"  {printable(name)}: {printable(found[name])}" for name in sorted(found)[:MOST]]
    return lines + ([f"  … and {len(found) - MOST} more"] if len(found) > MOST else [])
