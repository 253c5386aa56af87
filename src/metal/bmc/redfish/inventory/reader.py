"""Reads the parts of an inventory; what cannot be read is recorded as a sentence, and the rest is kept."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from metal.bmc.errors import BMCAuthError, BMCError, BMCTLSError, BMCUnreachable
from metal.redfish import ConnectionDropped, RedfishClient, Resource, members, resolve
from metal.redfish.collections import Member
from metal.redfish.paths import local_path
from metal.redfish.resources import Ref

T = TypeVar("T", bound=msgspec.Struct)


class Reader:
    """Collects problems. Raises only errors that end all reads: no connection, an untrusted certificate, no login."""

    def __init__(self, client: RedfishClient, *, expand: bool = True) -> None:
        self.client = client
        self.problems: list[str] = []
        self._expand = expand

    async def all(self, ref: Ref, kind: type[T], what: str) -> list[T]:
        """The members of a collection; none where the system has no such collection."""
        return [resource.decode(kind) for resource in await self.resources(ref, what)]

    async def resources(self, ref: Ref, what: str) -> list[Resource]:
        """Like `all`, undecoded."""
        if not ref.odata_id:
            return []
        try:
            found = await members(self.client, local_path(ref.odata_id), expand=self._expand)
        except BMCError as error:
            self._note(error, what)
            return []
        return self._readable(found, what)

    async def linked(self, entries: Iterable[object], kind: type[T], what: str) -> list[T]:
        """The resources behind links."""
        found = await resolve(self.client, entries)
        return [resource.decode(kind) for resource in self._readable(found, what)]

    async def one(self, ref: Ref, kind: type[T], what: str) -> T | None:
        """The resource behind one link; None when it cannot be read."""
        found = await self.linked([{"@odata.id": ref.odata_id}], kind, what) if ref.odata_id else []
        return found[0] if found else None

    def _readable(self, found: list[Member], what: str) -> list[Resource]:
        resources: list[Resource] = []
        for member in found:
            if isinstance(member, BMCError):
                self._note(member, what)
            else:
                resources.append(member)
        return resources

    def _note(self, error: BMCError, what: str) -> None:
        gone = isinstance(error, BMCUnreachable) and not isinstance(error, ConnectionDropped)
        if gone or isinstance(error, BMCAuthError | BMCTLSError):
            raise error
        self.problems.append(f"Could not read all {what}: {error}")
