"""A client that may do what the generated rules allow, and nothing else; it keeps a list of the rules it used."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from metal.kube.client.errors import Forbidden, NotFound
from metal.kube.client.protocol import Client, Page, WatchEvent
from metal.kube.client.resources import Resource
from metal.kube.meta.objects import Kind, Object
from metal.kube.meta.permissions import Request, Right, Where

T = TypeVar("T", bound=Object)


class Guard(Client):
    """Refuses as kube-apiserver would with RBAC and the admission plugin OwnerReferencesPermissionEnforcement.

    used: rights that some request needed. refused: every request for which there was none, or that `inner` refused.
    eyes: an administrator's client, for what an API server sees by itself.
    """

    def __init__(
        self, inner: Client, eyes: Client, rights: Iterable[Right], home: str, kinds: Iterable[Kind[Any]]
    ) -> None:
        self.inner, self.eyes, self.home = inner, eyes, home
        self.rights = sorted(rights, key=lambda right: right.where is not Where.HOME)  # the narrowest first
        self.kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self.used: set[Right] = set()
        self.refused: list[str] = []

    def check(self, verb: str, kind: Kind[Any], name: str = "", namespace: str = "", subresource: str = "") -> None:
        """Raises Forbidden, and keeps it in mind."""
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        within = name if (kind.group, kind.plural) == ("", "namespaces") else namespace
        request = Request(verb, kind.group, resource, within, name)
        right = next((right for right in self.rights if right.allows(request, self.home)), None)
        if right is None:
            self.refused.append(str(request))
            raise Forbidden(f"the rules do not allow: {request}")
        self.used.add(right)

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        self.check("get", kind, name, namespace)
        with self._heard():
            return await self.inner.get(kind, name, namespace)

    async def list(self, kind: Kind[T], namespace: str = "", **options: Any) -> Page[T]:
        self.check("list", kind, _named(options), namespace)
        with self._heard():
            return await self.inner.list(kind, namespace, **options)

    async def watch(self, kind: Kind[T], namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent[T]]:
        self.check("watch", kind, _named(options), namespace)
        with self._heard():
            async for event in self.inner.watch(kind, namespace, **options):
                yield event

    async def create(self, kind: Kind[T], obj: Mapping[str, Any]) -> T:
        namespace = obj["metadata"].get("namespace", "")
        self.check("create", kind, namespace=namespace)
        self._admit(obj["metadata"].get("ownerReferences") or (), (), namespace)
        with self._heard():
            return await self.inner.create(kind, obj)

    async def patch(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        self.check("patch", kind, name, namespace)
        metadata = patch.get("metadata", {})
        if "ownerReferences" in metadata:
            await self._change_owners(kind, name, namespace, metadata["ownerReferences"] or ())
        with self._heard():
            return await self.inner.patch(kind, name, patch, namespace)

    async def patch_status(self, kind: Kind[T], name: str, patch: Mapping[str, Any], namespace: str = "") -> T:
        self.check("patch", kind, name, namespace, "status")
        with self._heard():
            return await self.inner.patch_status(kind, name, patch, namespace)

    async def apply(self, kind: Kind[T], obj: Mapping[str, Any], *, manager: str, force: bool = True) -> T:
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        self.check("patch", kind, name, namespace)
        try:
            await self._change_owners(kind, name, namespace, metadata.get("ownerReferences") or ())
        except NotFound:
            self.check("create", kind, name, namespace)
            self._admit(metadata.get("ownerReferences") or (), (), namespace)
        with self._heard():
            return await self.inner.apply(kind, obj, manager=manager, force=force)

    async def delete(self, kind: Kind[Any], name: str, namespace: str = "", **options: Any) -> None:
        self.check("delete", kind, name, namespace)
        with self._heard():
            await self.inner.delete(kind, name, namespace, **options)

    async def resources(self, api_version: str) -> tuple[Resource, ...]:
        return await self.inner.resources(api_version)

    async def aclose(self) -> None:
        await self.inner.aclose()

    @contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except Forbidden as exc:
            self.refused.append(f"the API: {exc.message}")
            raise

    async def _change_owners(self, kind: Kind[Any], name: str, namespace: str, owners: Sequence[Any]) -> None:
        there = await self.eyes.get(kind, name, namespace)
        before = {ref.uid for ref in there.metadata.owner_references}
        if {ref["uid"] for ref in owners} != before:
            self.check("delete", kind, name, namespace)
            self._admit(owners, before, namespace)

    def _admit(self, owners: Sequence[Any], before: Iterable[str], namespace: str) -> None:
        for ref in owners:
            if ref.get("blockOwnerDeletion") and ref["uid"] not in before:
                owner = self.kinds[ref["apiVersion"], ref["kind"]]
                self.check("update", owner, ref["name"], namespace if owner.namespaced else "", "finalizers")


def _named(options: Mapping[str, Any]) -> str:
    """kube-apiserver takes the name for authorization from this field selector."""
    name: str = options.get("fields", "")
    return name.removeprefix("metadata.name=") if name.startswith("metadata.name=") else ""
