"""One of the two APIs of a move (a home): access checks, its pause, and whether its managers have stopped."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

import metal
from metal.api.core import CONFIG_MAP, NAMESPACE
from metal.api.kinds import Kinds
from metal.api.meta import Kind
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.kube.client.protocol import Client
from metal.move.documents import Doc, fetch, kinds_in_order
from metal.move.pause import HEARTBEAT_TIMEOUT, INTERVAL, MANAGERS, MARK, Mark, read_mark

_REVIEW: Kind[Any] = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", msgspec.Raw, namespaced=False
)
_STOP_TIMEOUT = 90.0
"""Seconds that managers may take to stop."""


class Refused(Exception):
    """The move does not start or continue; str() says why and what to do."""


@dataclass
class Home:
    """An API with the operator's kinds. `name` is used in messages."""

    name: str
    client: Client
    kinds: Kinds
    namespace: str = "metal-system"
    exclusive: bool = False
    """No other process uses this API, so no manager can run there."""

    async def check(self) -> None:
        """Check that the CRDs exist and that the user has the permissions for a move. Raises Refused and ApiError."""
        for kind in self.kinds.all():
            await self._check_kind(kind)
        verbs = ("list", "create", "patch", "delete")
        await asyncio.gather(*(self._check_right(kind, verb) for kind in kinds_in_order(self.kinds) for verb in verbs))

    async def _check_kind(self, kind: Kind[Any]) -> None:
        try:
            await self.client.list(kind)
        except NotFound:
            name = f"{kind.plural}.{kind.group}"
            raise Refused(
                f"{self.name} has no {name}: apply config/crd of this version, with the same API group"
            ) from None

    async def _check_right(self, kind: Kind[Any], verb: str) -> None:
        wanted = {"verb": verb, "group": kind.group, "resource": kind.plural}
        review = await self.client.create(_REVIEW, {"metadata": {}, "spec": {"resourceAttributes": wanted}})
        if not msgspec.json.decode(review)["status"].get("allowed"):
            raise Refused(f"{self.name} does not let you {verb} {kind.plural}: use an administrator's kubeconfig")

    async def ensure_namespace(self) -> str:
        """The UID of the manager's namespace, which identifies a home; creates a missing namespace."""
        try:
            return (await self.client.get(NAMESPACE, self.namespace)).metadata.uid
        except NotFound:
            return (await self.client.create(NAMESPACE, {"metadata": {"name": self.namespace}})).metadata.uid

    async def mark(self) -> Mark | None:
        """The pause of this home, if there is one."""
        return await read_mark(self.client, self.namespace)

    async def pause(self, mark: Mark) -> None:
        """Create or update the pause."""
        body = {"metadata": {"name": MARK, "namespace": self.namespace}, "data": mark.as_data()}
        try:
            await self.client.create(CONFIG_MAP, body)
        except AlreadyExists:
            await self.client.patch(CONFIG_MAP, MARK, {"data": mark.as_data()}, self.namespace)

    async def release(self) -> None:
        """End the pause."""
        try:
            await self.client.delete(CONFIG_MAP, MARK, self.namespace)
        except NotFound:
            return

    async def managers(self) -> Mapping[str, str]:
        """The last entry of each manager."""
        try:
            return (await self.client.get(CONFIG_MAP, MANAGERS, self.namespace)).data
        except NotFound:
            return {}

    async def stopped(self, move: str) -> list[str]:
        """Wait until every running manager has stopped for this move; returns their names.

        A manager without a heartbeat for HEARTBEAT_TIMEOUT seconds counts as ended. Raises Refused when one continues
        to run.
        """
        if self.exclusive:
            return []
        loop = asyncio.get_running_loop()
        began, seen, changed = loop.time(), dict(await self.managers()), dict[str, float]()
        while True:
            now = await self.managers()
            for name in now:
                if name not in changed or now[name] != seen.get(name):
                    changed[name] = loop.time()
            seen = dict(now)
            waiting = [
                n
                for n, said in now.items()
                if said.split()[-1:] != [move] and loop.time() - changed[n] < HEARTBEAT_TIMEOUT
            ]
            if not waiting:
                return sorted(name for name, said in now.items() if said.split()[-1:] == [move])
            if loop.time() - began > _STOP_TIMEOUT:
                raise Refused(
                    f"{', '.join(sorted(waiting))} at {self.name} run and do not stop: end them, and try again"
                )
            await asyncio.sleep(INTERVAL / 3)

    async def other_versions(self) -> list[str]:
        """Managers with another version than this program."""
        said = {name: text.split() for name, text in (await self.managers()).items()}
        return [f"{n} {words[1]}" for n, words in said.items() if len(words) == 3 and words[1] != metal.__version__]

    async def objects(self) -> list[Doc]:
        """All objects of the operator's kinds."""
        return [doc for kind in kinds_in_order(self.kinds) if kind.group for doc in await fetch(self.client, kind)]
