"""Delete: at once, or by deletionTimestamp when finalizers or dependents must go first."""

from dataclasses import dataclass, replace
from typing import Any

from metal.apiserver.machinery import status
from metal.apiserver.machinery.options import DeleteOptions, Propagation
from metal.apiserver.machinery.records import NAMESPACES, Record, encode
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.storage.store import Store
from metal.kube.meta.clock import Clock, timestamp

Obj = dict[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
PROTECTED = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that cannot be deleted."""


@dataclass(frozen=True)
class Deletion:
    """Result of a delete: the object is removed, or it waits for its finalizers."""

    record: Record
    gone: bool


class Deleter:
    """Removes objects by the rules of finalizers and propagation policies."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def delete(self, ctx: RequestContext, options: DeleteOptions) -> Deletion:
        """Delete one object. Raises StatusError 403, 404 or 409."""
        if ctx.resource.key == NAMESPACES and ctx.name in PROTECTED:
            raise status.forbidden(ctx.who, "this namespace may not be deleted")
        current = self._store.newest(ctx.key)
        if current is None:
            raise status.not_found(ctx.who)
        obj = current.decode()
        meta = obj["metadata"]
        _check_preconditions(ctx, meta, options)
        wanted = _finalizers(meta.get("finalizers", []), options.propagation)
        if not wanted and not ctx.resource.strategy.held(obj):
            return await self._remove(current, options)
        return await self._mark(ctx, current, obj, wanted, options)

    async def _remove(self, current: Record, options: DeleteOptions) -> Deletion:
        if not options.dry_run:
            current = await self._store.remove(current.key)
        return Deletion(current, gone=True)

    async def _mark(
        self, ctx: RequestContext, current: Record, obj: Obj, finalizers: list[str], options: DeleteOptions
    ) -> Deletion:
        meta = obj["metadata"]
        if current.deleting and finalizers == meta.get("finalizers", []):
            return Deletion(current, gone=False)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        if not current.deleting:
            meta["deletionTimestamp"] = timestamp(self._clock())
            if not ctx.resource.strategy.finalizers and ctx.resource.key != NAMESPACES:
                meta["deletionGracePeriodSeconds"] = 0
            if "generation" in meta:
                meta["generation"] += 1
            ctx.resource.strategy.deleted(obj)
        if options.dry_run:
            return Deletion(Record.parse(ctx.resource.key, encode(obj)), gone=False)
        return Deletion(await self._store.write(ctx.resource.key, obj), gone=False)


def _check_preconditions(ctx: RequestContext, meta: Obj, options: DeleteOptions) -> None:
    who = replace(ctx.who, plural=ctx.resource.kind)
    if options.uid and options.uid != meta["uid"]:
        message = f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']})"
        raise status.conflict(who, f"{message}. The object might have been deleted and then recreated")
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        message = f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
        message += f"ResourceVersion in record ({meta['resourceVersion']})"
        raise status.conflict(who, f"{message}. The object might have been modified")


def _finalizers(held: list[str], propagation: Propagation | None) -> list[str]:
    if propagation is None:
        return list(held)
    own = {Propagation.FOREGROUND: [FOREGROUND], Propagation.ORPHAN: [ORPHAN]}.get(propagation, [])
    kept = [name for name in held if name not in (FOREGROUND, ORPHAN) or name in own]
    return kept + [name for name in own if name not in kept]
