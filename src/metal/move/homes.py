"""One of the two homes: its API, its pause, and whether its managers have stopped."""

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
from metal.move.pause import DEAD, INTERVAL, MANAGERS, MARK, Mark, read_mark

_REVIEW: Kind[Any] = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", msgspec.Raw, namespaced=False
)
_PATIENCE = 90.0
"""Seconds that managers may take to stop."""


class Refused(Exception):
    """The move does not begin or go on; str() says why and what to do. Nothing acts on both homes."""


@dataclass
class Home:
    """An API with our kinds. `name` is what people call it."""

    name: str
    client: Client
    kinds: Kinds
    namespace: str = "metal-system"
    alone: bool = False
    """Nobody else has this API: no manager can live there."""

    async def check(self) -> None:
        """CRDs are there, and we may do what a move does. Raises Refused and ApiError."""
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
        """The UID of the manager's namespace, which tells homes apart; it is made when missing."""
        try:
            return (await self.client.get(NAMESPACE, self.namespace)).metadata.uid
        except NotFound:
            return (await self.client.create(NAMESPACE, {"metadata": {"name": self.namespace}})).metadata.uid

    async def mark(self) -> Mark | None:
        """The pause here, if there is one."""
        return await read_mark(self.client, self.namespace)

    async def pause(self, mark: Mark) -> None:
        """Put the mark there, or change what it says."""
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
        """What each manager last said of itself."""
        try:
            return (await self.client.get(CONFIG_MAP, MANAGERS, self.namespace)).data
        except NotFound:
            return {}

    async def stopped(self, move: str) -> list[str]:
        """Wait until every manager that lives has stopped for this move; returns their names.

        A manager that gives no sign of life for DEAD seconds is none. Raises Refused when one lives and goes on.
        """
        if self.alone:
            return []
        loop = asyncio.get_running_loop()
        began, seen, changed = loop.time(), dict(await self.managers()), dict[str, float]()
        while True:
            now = await self.managers()
            for name in now:
                if name not in changed or now[name] != seen.get(name):
                    changed[name] = loop.time()
            seen = dict(now)
            waiting = [n for n, said in now.items() if said.split()[-1:] != [move] and loop.time() - changed[n] < DEAD]
            if not waiting:
                return sorted(name for name, said in now.items() if said.split()[-1:] == [move])
            if loop.time() - began > _PATIENCE:
                raise Refused(
                    f"{', '.join(sorted(waiting))} at {self.name} live and do not stop: end them, and try again"
                )
            await asyncio.sleep(INTERVAL / 3)

    async def other_versions(self) -> list[str]:
        """Managers of another version than this program."""
        said = {name: text.split() for name, text in (await self.managers()).items()}
        return [f"{n} {words[1]}" for n, words in said.items() if len(words) == 3 and words[1] != metal.__version__]

    async def objects(self) -> list[Doc]:
        """All objects of our own kinds."""
        return [doc for kind in kinds_in_order(self.kinds) if kind.group for doc in await fetch(self.client, kind)]
