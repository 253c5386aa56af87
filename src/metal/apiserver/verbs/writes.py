"""Create, update, patch and apply: from the body of a request to the stored object.

Each write reads the newest staged version, computes the new object with pure functions (`shaping`, `patching`), checks
it, and stages it in the store without an await in between. So two writers cannot overwrite one another, and no locks
are needed; the await for the journal comes last.
"""

import random
from typing import Any

from metal.apiserver.machinery import metadata, status
from metal.apiserver.machinery.causes import Cause, forbidden, required
from metal.apiserver.machinery.object_meta import validate_metadata
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.machinery.records import NAMESPACES, ObjectKey, Record, encode
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.patching import apply as ssa
from metal.apiserver.patching import apply_validation, last_applied
from metal.apiserver.storage.store import Store
from metal.apiserver.verbs import decoding, shaping, strict
from metal.kube.meta.clock import Clock

Obj = dict[str, Any]

_PATCH_OPTIONS = status.Who("meta.k8s.io", kind="PatchOptions")
_MANAGER_NEEDED = required("fieldManager", "is required for apply patch")
_NO_FORCE = forbidden("force", "may not be specified for non-apply patch")
_ATTEMPTS = 8
"""Attempts to generate a free name before the create is refused, as in kube-apiserver."""


class Writer:
    """Turns requests into stored objects. No method awaits between reading an object and staging its new version."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng

    async def create(self, ctx: RequestContext, obj: Any) -> Record:
        """Store a new object. Raises StatusError 400, 403, 404, 409, 422 or 500."""
        obj = decoding.posted(ctx, obj)
        if obj["metadata"].get("resourceVersion"):
            raise status.unspecified_error("resourceVersion should not be set on objects to be created")
        return await self._create(ctx, obj)

    async def update(self, ctx: RequestContext, obj: Any) -> Record:
        """Replace an object. Raises StatusError 400, 404, 409, 422 or 500."""
        obj = decoding.posted(ctx, obj)
        metadata.check_name(obj["metadata"], ctx.name)
        metadata.check_namespace(obj["metadata"], ctx.namespace)
        current = self._existing(ctx)
        old = shaping.at_version(ctx.resource, current.decode())
        shaping.check_version(ctx, obj["metadata"], old["metadata"])
        shaping.check_uid(ctx, obj["metadata"], old["metadata"])
        strict.check(ctx, obj)
        return await self._update(ctx, current, obj, old)

    async def patch(self, ctx: RequestContext, kind: PatchType, body: Any) -> Record:
        """Change an object by a JSON, merge or strategic merge patch. Raises StatusError."""
        if ctx.options.force is not None:
            raise status.invalid(_PATCH_OPTIONS, [_NO_FORCE])
        current = self._existing(ctx)
        old = shaping.at_version(ctx.resource, current.decode())
        # Only metadata of a custom object is modified in place: a merge may share the rest with the old object.
        shared = kind is PatchType.MERGE and ctx.resource.custom
        base = {**old, "metadata": dict(old["metadata"])} if shared else current.decode()
        obj = shaping.changed(ctx, shaping.at_version(ctx.resource, base), kind, body)
        obj = decoding.patched(ctx, obj, kind)
        metadata.check_name(obj["metadata"], ctx.name)
        metadata.check_namespace(obj["metadata"], ctx.namespace)
        shaping.check_version(ctx, obj["metadata"], old["metadata"])
        strict.check(ctx, obj, patch=True)
        return await self._update(ctx, current, obj, old)

    def _existing(self, ctx: RequestContext) -> Record:
        current = self._store.newest(ctx.key)
        if current is None:
            raise status.not_found(ctx.who)
        return current

    async def apply(self, ctx: RequestContext, obj: Any) -> Record:
        """Server-side apply (KEP-555); creates what does not exist. Raises StatusError."""
        if not ctx.options.manager:
            raise status.invalid(_PATCH_OPTIONS, [_MANAGER_NEEDED])
        obj = decoding.applied(ctx, obj)
        current = self._existing(ctx) if ctx.subresource else self._store.newest(ctx.key)
        apply_validation.check(ctx.resource, obj)
        sent = {**obj, "metadata": dict(obj["metadata"])}
        obj["metadata"].setdefault("name", ctx.name)
        metadata.check_name(obj["metadata"], ctx.name)
        metadata.check_namespace(obj["metadata"], ctx.namespace)
        if current is None:
            if uid := obj["metadata"].get("uid"):
                message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise status.conflict(ctx.who, message)
            shaping.check_number(obj["metadata"])
            return await self._create(ctx, self._applied(ctx, None, obj, sent), applied=True)
        live = shaping.at_version(ctx.resource, current.decode())
        merged = self._applied(ctx, live, obj, sent)
        shaping.check_version(ctx, merged["metadata"], live["metadata"])
        old = shaping.at_version(ctx.resource, current.decode())
        return await self._update(ctx, current, merged, old, applied=True)

    def _applied(self, ctx: RequestContext, live: Obj | None, obj: Obj, sent: Obj) -> Obj:
        try:
            merged = ssa.apply(
                live,
                obj,
                manager=ctx.options.manager,
                force=bool(ctx.options.force),
                schema=ctx.resource.schema,
                now=self._clock(),
                subresource=ctx.subresource,
                reset=("status",) if ctx.resource.status else (),
            )
        except ssa.ApplyConflict as clash:
            raise status.apply_conflict(str(clash), clash.causes) from clash
        if ctx.options.manager == last_applied.MANAGER:
            merged = last_applied.renewed(merged, sent)
        metadata.drop_empty(merged["metadata"])
        return decoding.merged(ctx, merged)

    async def _create(self, ctx: RequestContext, obj: Obj, *, applied: bool = False) -> Record:
        resource = ctx.resource
        meta = obj["metadata"]
        if "create" not in resource.verbs:
            raise status.method_not_allowed()
        if resource.namespaced and not ctx.namespace:
            raise status.bad_request("an empty namespace may not be set during creation")
        metadata.check_namespace(meta, ctx.namespace)
        self._check_space(ctx, meta)
        shaping.check_type(ctx.resource, obj)
        metadata.set_creation_fields(meta, now=self._clock(), rng=self._rng, generations=resource.strategy.generations)
        self._name(ctx, meta)
        if missing := [name for name in resource.strategy.finalizers if name not in meta.get("finalizers", ())]:
            meta["finalizers"] = meta.get("finalizers", []) + missing
        if resource.status:
            obj.pop("status", None)
        strict.check(ctx, obj)
        obj = shaping.shaped(resource, obj, None, applied=applied)
        if not applied:
            obj["metadata"].pop("managedFields", None)
            obj = self._tracked(ctx, None, obj)
        self._validate(ctx, obj, None)
        name = obj["metadata"]["name"]
        if (taken := self._store.newest(ObjectKey(resource.key, ctx.namespace, name))) is not None:
            if meta.get("generateName"):
                raise status.name_taken(resource.who(name))
            raise status.already_exists(resource.who(name), deleting=taken.deleting)
        obj = shaping.stored(resource, obj)
        if ctx.options.dry_run:
            return Record.parse(resource.key, encode(obj))
        return await self._store.write(resource.key, obj)

    def _name(self, ctx: RequestContext, meta: Obj) -> None:
        """Generate a free name for an object without name."""
        prefix = meta.get("generateName")
        if meta.get("name") or not prefix:
            return
        for _ in range(_ATTEMPTS):
            meta["name"] = metadata.generated(prefix, self._rng)
            if self._store.newest(ObjectKey(ctx.resource.key, ctx.namespace, meta["name"])) is None:
                return

    def _check_space(self, ctx: RequestContext, meta: Obj) -> None:
        if not ctx.resource.namespaced:
            return
        space = self._store.newest(ObjectKey(NAMESPACES, "", ctx.namespace))
        if space is None:
            raise status.not_found(status.Who("", "namespaces", name=ctx.namespace))
        if space.deleting:
            message = f"unable to create new content in namespace {ctx.namespace} because it is being terminated"
            cause = Cause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {ctx.namespace} is being terminated"
            )
            raise status.forbidden(ctx.resource.who(meta.get("name", "")), message, [cause])

    async def _update(
        self, ctx: RequestContext, current: Record, obj: Obj, old: Obj, *, applied: bool = False
    ) -> Record:
        resource = ctx.resource
        shaping.check_type(resource, obj)
        if causes := metadata.immutable_changes(obj["metadata"], old["metadata"]):
            raise status.invalid(ctx.who, causes)
        claimed = shaping.claimed(ctx, obj, old)
        obj = shaping.with_other_half(ctx, obj, old, applied=applied)
        obj = shaping.shaped(resource, obj, old, applied=applied)
        if obj == old and claimed is None:
            return current
        if not applied:
            obj = self._tracked(ctx, old, obj, claimed)
        if obj == old:
            return current
        strict.warn_finalizers(ctx, obj, old)
        if resource.strategy.generations and shaping.intent_changed(resource, obj, old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        self._validate(ctx, obj, old)
        obj = shaping.stored(resource, obj)
        return await self._store_change(ctx, current, obj)

    async def _store_change(self, ctx: RequestContext, current: Record, obj: Obj) -> Record:
        if ctx.options.dry_run:
            return Record.parse(ctx.resource.key, encode(obj))
        meta = obj["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers") and not ctx.resource.strategy.held(obj):
            await self._store.remove(current.key)
            return Record.parse(ctx.resource.key, encode(obj))
        return await self._store.write(ctx.resource.key, obj)

    def _tracked(self, ctx: RequestContext, old: Obj | None, new: Obj, claimed: Obj | None = None) -> Obj:
        """The new object with managedFields updated. claimed: changed metadata in a write to a subresource."""
        aside = ctx.resource.strategy.unowned
        shown = new if claimed is None else {**new, "metadata": claimed}
        tracked = ssa.track_update(
            None if old is None else {key: value for key, value in old.items() if key not in aside},
            {key: value for key, value in shown.items() if key not in aside},
            manager=ctx.options.manager or ctx.options.agent or "unknown",
            schema=ctx.resource.schema,
            now=self._clock(),
            subresource=ctx.subresource,
            blank=ctx.resource.strategy.blank,
        )
        return shaping.with_managed(new, tracked["metadata"].get("managedFields"))

    def _validate(self, ctx: RequestContext, obj: Obj, old: Obj | None) -> None:
        resource = ctx.resource
        old_meta = None if old is None else old["metadata"]
        resource.strategy.admit(ctx, obj, old)
        causes = validate_metadata(
            obj["metadata"],
            namespaced=resource.namespaced,
            old=old_meta,
            path_names=resource.strategy.path_names,
        )
        causes += shaping.of_part(ctx, resource.schema.validate(obj, old))
        causes += resource.strategy.check(obj, old)
        if causes:
            raise status.invalid(resource.who(obj["metadata"].get("name", "")), causes)
