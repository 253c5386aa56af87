"""A Redfish transport to a simulated BMC without sockets, for tests in virtual time."""

import asyncio
from collections.abc import Callable, Mapping

from metal.bmc.pool import BMCEndpoint
from metal.redfish.errors import BMCCertificateChanged, BMCTimeout, BMCUnreachable
from metal.redfish.transport import Response, Transport
from metal.sim.bmc.redfish_service import SimBMC


class SimTransport:
    """Requests to one BMC, delayed by its latency."""

    def __init__(self, bmc: SimBMC | None, access: BMCEndpoint) -> None:
        self._bmc, self._name, self._pin = bmc, f"{access.address}:{access.port}", access.fingerprint
        self._closed = False

    def __repr__(self) -> str:
        return f"<SimTransport {self._name}>"

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None, timeout: float
    ) -> Response:
        """See Transport."""
        if self._closed:
            raise BMCUnreachable(f"The connection to {self._name} was closed on our side.")
        bmc = self._bmc
        if bmc is None or bmc.unreachable:
            raise BMCUnreachable(f"No connection to {self._name}: no BMC has this address.")
        if self._pin and self._pin != bmc.certificate:
            raise BMCCertificateChanged(self._name, self._pin, bmc.certificate)
        delay = bmc.delay()
        if bmc.machine.faults.hangs or delay >= timeout:
            await asyncio.sleep(timeout)
            raise BMCTimeout(f"{self._name} did not answer {method} within {timeout:g} s.")
        await asyncio.sleep(delay)
        return bmc.handle(method, path, headers, body)

    async def aclose(self) -> None:
        """Every later request fails with BMCUnreachable."""
        self._closed = True


def transport_factory(bmcs: Mapping[str, SimBMC]) -> Callable[[BMCEndpoint], Transport]:
    """For RedfishPool: creates the transport to the BMC at an endpoint's address."""

    def make(access: BMCEndpoint) -> Transport:
        return SimTransport(bmcs.get(access.address), access)

    return make
