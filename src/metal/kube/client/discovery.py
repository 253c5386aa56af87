"""Finds a kind that is known by apiVersion and kind only."""

from dataclasses import replace

from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.resources import Resource


class Discovery:
    """Asks the API where a kind lives, and remembers what it found; `forget` when that was wrong."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[tuple[str, str], Resource] = {}

    async def find(self, api_version: str, kind: str, struct: type) -> Resource:
        """The kind, decoded by `struct`. Raises NotFound when the API has no such kind, and other ApiErrors."""
        found = self._found.get((api_version, kind))
        if found is None:
            found = self._found[api_version, kind] = await self._ask(api_version, kind)
        return replace(found, struct=struct)

    def forget(self, api_version: str, kind: str) -> None:
        """Ask again next time: its CRD may have gone, or come back under another plural."""
        self._found.pop((api_version, kind), None)

    async def _ask(self, api_version: str, kind: str) -> Resource:
        for resource in await self._client.resources(api_version):
            if resource.kind == kind:
                return resource
        raise NotFound(f"the API has {api_version}, and no kind {kind} in it")
