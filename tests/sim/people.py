"""What users do to a server: claim, change, maintain, park, reset and delete it."""

from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from metal.api.names import PARK, UNPARK
from metal.controllers.server.operations import RESETS
from metal.controllers.server.tenancy.sanitization_result import ACCEPT
from metal.kube.client.errors import NotFound
from metal.kube.meta.objects import Kind
from tests.sim.plane import KINDS
from tests.sim.stage import SECONDS, Stage
from tests.sim.steps import APPROVED

CLAIMS = st.sampled_from(["c1", "c1", "c1", "c2", "c3"])
POWER = st.sampled_from(["On", "On", "Off"])
TEMPLATE = {"name": "m1", "spec": {"serverRef": {"name": "x"}, "image": "images.sim/demo:latest"}}
OPERATIONS = st.sampled_from(["retry", "retry", PARK, UNPARK, ACCEPT, *RESETS])


class People(Stage):
    """Rules for users of the API; refused requests are accepted as such."""

    @rule(name=CLAIMS, power=POWER, policy=st.sampled_from(["", "", "Clear", "Purge"]), seconds=SECONDS)
    def claim(self, name: str, power: str, policy: str, seconds: float) -> None:
        """Create a claim."""
        self.do(self.world.add_claim(name, power=power, sanitizationPolicy=policy), seconds)

    @rule(name=CLAIMS, seconds=SECONDS)
    def release(self, name: str, seconds: float) -> None:
        """Delete a claim."""
        self.do(self.world.client.delete(KINDS.claim, name, "default"), seconds)

    @rule(name=CLAIMS, field=st.sampled_from(["power", "image"]), power=POWER, seconds=SECONDS)
    def change(self, name: str, field: str, power: str, seconds: float) -> None:
        """Change the power or image of a claim."""
        value = power if field == "power" else "images.sim/probe:latest"
        self.do(self.world.client.patch(KINDS.claim, name, {"spec": {field: value}}, "default"), seconds)

    @rule(name=CLAIMS, number=st.sampled_from([0, 1, 2, 3]), seconds=SECONDS)
    def ask_for_another_boot(self, name: str, number: int, seconds: float) -> None:
        """Request another network boot for a claim, or withdraw the request."""
        self.do(self.world.client.patch(KINDS.claim, name, {"spec": {"bootGeneration": number}}, "default"), seconds)

    @rule(
        policy=st.sampled_from(["Enforced", "OwnerApproval"]), power=st.sampled_from(["", "On", "Off"]),
        boots=st.booleans(), seconds=SECONDS,
    )  # fmt: skip
    def maintain(self, policy: str, power: str, boots: bool, seconds: float) -> None:
        """Create a maintenance, with or without a system of its own."""
        self.do(self._maintain(policy, power, boots), seconds)

    async def _maintain(self, policy: str, power: str, boots: bool) -> None:
        for server in await self.world.servers():
            spec: dict[str, Any] = {
                "serverRef": {"name": server.metadata.name}, "policy": policy, "serverPower": power,
            }  # fmt: skip
            if boots:
                spec["serverBootConfigurationTemplate"] = TEMPLATE
            body = {"metadata": {"name": "m1", "namespace": "default"}, "spec": spec}
            await self.world.client.create(KINDS.maintenance, body)

    @rule(seconds=SECONDS)
    def end_maintenance(self, seconds: float) -> None:
        """Delete the maintenance."""
        self.do(self.world.client.delete(KINDS.maintenance, "m1", "default"), seconds)

    @rule(name=CLAIMS, given=st.sampled_from(["true", None]), seconds=SECONDS)
    def approve(self, name: str, given: str | None, seconds: float) -> None:
        """Approve a maintenance as the owner of the claim, or withdraw the approval."""
        body = {"metadata": {"labels": {APPROVED: given}}}
        self.do(self.world.client.patch(KINDS.claim, name, body, "default"), seconds)

    @rule(word=OPERATIONS, seconds=SECONDS)
    def order(self, word: str, seconds: float) -> None:
        """Request an operation by annotation, in any state."""
        self.do(self.operate(word), seconds)

    @rule(cordoned=st.booleans(), seconds=SECONDS)
    def cordon(self, cordoned: bool, seconds: float) -> None:
        """Cordon or uncordon servers."""
        self.do(self.each_server({"spec": {"unclaimable": cordoned}}), seconds)

    @rule(policy=st.sampled_from(["Retain", "Recycle"]), seconds=SECONDS)
    def reclaim(self, policy: str, seconds: float) -> None:
        """Change the reclaim policy."""
        self.do(self.each_server({"spec": {"reclaimPolicy": policy}}), seconds)

    @rule(seconds=SECONDS)
    def free(self, seconds: float) -> None:
        """Remove the reference to the claim from a Released server."""
        self.do(self._free(), seconds)

    async def _free(self) -> None:
        for server in await self.world.servers():
            if server.status.state == "Released":
                await self.world.client.patch(KINDS.server, server.metadata.name, {"spec": {"serverClaimRef": None}})

    @rule(kind=st.sampled_from(["server", "bmc", "endpoint"]), seconds=SECONDS)
    def delete(self, kind: str, seconds: float) -> None:
        """Delete a Server, BMC or Endpoint; the next lease or poll of the BMC creates it again."""
        self.do(self._delete(getattr(KINDS, kind)), seconds)

    async def _delete(self, kind: Kind[Any]) -> None:
        for item in (await self.world.client.list(kind)).items:
            with suppress(NotFound):
                await self.world.client.delete(kind, item.metadata.name)

    @rule(accepts=st.booleans())
    def change_the_person(self, accepts: bool) -> None:
        """Change how an administrator decides about drives that are not erased."""
        self.accepts = accepts
