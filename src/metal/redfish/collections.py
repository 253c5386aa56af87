"""Resource collections: all members, page by page, with $expand where the BMC supports it (DSP0266)."""

import asyncio
from collections.abc import Iterable
from typing import Any

from metal.redfish.client import RedfishClient, Resource
from metal.redfish.errors import BMCBadRequest, BMCError, BMCNotFound, BMCNotSupported, BMCProtocolError, BMCServerError
from metal.redfish.paths import local_path

Member = Resource | BMCError


async def members(client: RedfishClient, path: str, *, expand: bool = True) -> list[Member]:
    """Every member, in the collection's order; a BMCError in place of one that could not be read.

    Requests expanded members where the service root supports it; members that are links or lack an Id are read one by
    one, at most two at a time. Members deleted meanwhile are omitted.

    Raises: BMCError when the collection itself cannot be read; BMCProtocolError when its pages do not end.
    """
    entries = await _entries(client, path, expand=expand)
    return await resolve(client, entries)


async def resolve(client: RedfishClient, entries: Iterable[object]) -> list[Member]:
    """The resources behind links; entries that are whole resources already cost no request."""
    slots = asyncio.Semaphore(client.limits.reads)

    async def one(entry: dict[str, Any]) -> Member | None:
        link = entry["@odata.id"]
        if "Id" in entry or "MemberId" in entry:
            return Resource(link, entry)
        try:
            async with slots:
                return await client.get(local_path(link))
        except BMCNotFound:
            return None
        except BMCError as error:
            return error

    usable = (entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("@odata.id"), str))
    found = await asyncio.gather(*(one(entry) for entry in usable))
    return [member for member in found if member is not None]


async def _entries(client: RedfishClient, path: str, *, expand: bool) -> list[object]:
    query = await _expand_query(client) if expand else ""
    if query and "?" not in path:
        try:
            return await _pages(client, path + query)
        except (BMCBadRequest, BMCNotSupported, BMCServerError):
            pass  # a BMC that advertises $expand and fails at it is read without
    return await _pages(client, path)


async def _expand_query(client: RedfishClient) -> str:
    support = (await client.root()).protocol_features_supported.expand_query
    if support.no_links:
        return "?$expand=.($levels=1)" if support.levels else "?$expand=."
    return ""


async def _pages(client: RedfishClient, path: str) -> list[object]:
    entries: list[object] = []
    seen: set[str] = set()
    link: object = path
    while isinstance(link, str) and link:
        here = local_path(link)
        if here in seen or len(seen) >= client.limits.pages:
            raise BMCProtocolError(f"The collection {path} on {client.name} has an endless sequence of pages.")
        seen.add(here)
        page = (await client.get(here)).data
        found = page.get("Members")
        entries += found if isinstance(found, list) else []
        if len(entries) > client.limits.members:
            raise BMCProtocolError(
                f"The collection {path} on {client.name} has more than {client.limits.members} members."
            )
        link = page.get("Members@odata.nextLink") or page.get("@odata.nextLink")
    return entries
