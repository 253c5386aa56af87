"""Add and remove finalizers by conditional merge patch, so that two writers never undo each other."""

from typing import TypeVar

from metal.kube.client.errors import NotFound
from metal.kube.client.protocol import Client
from metal.kube.meta.objects import Kind, Object

T = TypeVar("T", bound=Object)


async def add_finalizer(client: Client, kind: Kind[T], obj: T, name: str) -> T:
    """The object with the finalizer on it; no request when it is there. Raises Conflict if the object has changed."""
    if name in obj.metadata.finalizers:
        return obj
    return await _write(client, kind, obj, [*obj.metadata.finalizers, name])


async def remove_finalizer(client: Client, kind: Kind[T], obj: T, name: str) -> T | None:
    """The object without the finalizer, None if it is gone. Raises Conflict if the object has changed.

    Removing the last finalizer of an object that is being deleted deletes it: do not use the returned object then.
    """
    if name not in obj.metadata.finalizers:
        return obj
    try:
        return await _write(client, kind, obj, [other for other in obj.metadata.finalizers if other != name])
    except NotFound:
        return None


async def _write(client: Client, kind: Kind[T], obj: T, finalizers: list[str]) -> T:
    meta = obj.metadata
    patch = {"metadata": {"finalizers": finalizers or None, "resourceVersion": meta.resource_version}}
    return await client.patch(kind, meta.name, patch, meta.namespace)
