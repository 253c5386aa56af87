"""Create, update, patch and apply: from what a caller sent to what is stored."""

import random
from typing import Any

from metal.apiserver import apply as ssa
from metal.apiserver import metadata, shaping, status
from metal.apiserver.causes import Cause, required
from metal.apiserver.objectmeta import validate_metadata
from metal.apiserver.records import NAMESPACES, ObjectKey, Record, encode
from metal.apiserver.requests import FieldValidation, PatchType, RequestContext
from metal.apiserver.store import Store
from metal.kube.clock import Clock

Obj = dict[str, Any]

_MANAGER_NEEDED = required("fieldManager", "is required for apply patch")
_VERSION_NEEDED = Cause(
    "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0x0: must be specified for an update"
)


class Writer:
    """Turns requests into stored objects. No method awaits between reading an object and staging its new version."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng

    async def create(self, ctx: RequestContext, obj: Obj) -> Record:
        """Store a new object. Raises StatusError 400, 403, 404, 409 or 422."""
        obj = shaping.body(ctx, obj)
        if obj["metadata"].get("resourceVersion"):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        return await self._create(ctx, obj)

    async def update(self, ctx: RequestContext, obj: Obj) -> Record:
        """Replace an object. Raises StatusError 400, 404, 409 or 422."""
        obj = shaping.body(ctx, obj)
        current = self._store.newest(ctx.key)
        if current is None:
            raise status.not_found(ctx.who)
        if not obj["metadata"].get("resourceVersion") and not ctx.resource.strategy.unconditional:
            raise status.invalid(ctx.who, [_VERSION_NEEDED])
        return await self._update(ctx, current, obj, shaping.at_version(ctx.resource, current.decode()))

    async def patch(self, ctx: RequestContext, kind: PatchType, body: Any) -> Record:
        """Change an object by a JSON, merge or strategic merge patch. Raises StatusError."""
        current = self._store.newest(ctx.key)
        if current is None:
            raise status.not_found(ctx.who)
        old = shaping.at_version(ctx.resource, current.decode())
        # Nothing of a custom object but its metadata is changed in place: a merge may share the rest with the old one.
        shared = kind is PatchType.MERGE and ctx.resource.custom
        base = {**old, "metadata": dict(old["metadata"])} if shared else current.decode()
        obj = shaping.patched(ctx, shaping.at_version(ctx.resource, base), kind, body)
        return await self._update(ctx, current, shaping.body(ctx, obj), old)

    async def apply(self, ctx: RequestContext, obj: Obj) -> Record:
        """Server-side apply (KEP-555); creates what does not exist. Raises StatusError."""
        if not ctx.options.manager:
            raise status.invalid(status.Who("meta.k8s.io", kind="PatchOptions"), [_MANAGER_NEEDED])
        obj = shaping.body(ctx, obj)
        if obj["metadata"].get("managedFields"):
            raise status.bad_request("metadata.managedFields must be nil")
        obj["metadata"].setdefault("name", ctx.name)
        current = self._store.newest(ctx.key)
        if current is None and ctx.subresource:
            raise status.not_found(ctx.who)
        live = None if current is None else shaping.at_version(ctx.resource, current.decode())
        shaping.check_identity(ctx, obj["metadata"], {} if live is None else live["metadata"])
        merged = shaping.body(ctx, self._applied(ctx, live, obj))
        if current is None:
            return await self._create(ctx, merged, applied=True)
        old = shaping.at_version(ctx.resource, current.decode())
        return await self._update(ctx, current, merged, old, applied=True)

    def _applied(self, ctx: RequestContext, live: Obj | None, obj: Obj) -> Obj:
        try:
            return ssa.apply(
                live,
                obj,
                manager=ctx.options.manager,
                force=ctx.options.force,
                schema=ctx.resource.schema,
                now=self._clock(),
                subresource=ctx.subresource,
                reset=("status",) if ctx.resource.status else (),
            )
        except ssa.ApplyConflict as clash:
            raise status.apply_conflict(str(clash), clash.causes) from clash

    async def _create(self, ctx: RequestContext, obj: Obj, *, applied: bool = False) -> Record:
        resource = ctx.resource
        meta = obj["metadata"]
        if "create" not in resource.verbs:
            raise status.method_not_allowed()
        if resource.namespaced and not ctx.namespace:
            raise status.bad_request("an empty namespace may not be set during creation")
        metadata.check_namespace(meta, ctx.namespace)
        self._check_space(ctx, meta)
        metadata.stamp(meta, now=self._clock(), rng=self._rng, generations=resource.strategy.generations)
        if missing := [name for name in resource.strategy.finalizers if name not in meta.get("finalizers", ())]:
            meta["finalizers"] = meta.get("finalizers", []) + missing
        if resource.status:
            obj.pop("status", None)
        self._warn_unknown(ctx, obj)
        obj = shaping.shaped(resource, obj, None)
        if not applied:
            obj["metadata"].pop("managedFields", None)
            obj = self._tracked(ctx, None, obj)
        self._validate(ctx, obj, None)
        name = obj["metadata"]["name"]
        if (taken := self._store.newest(ObjectKey(resource.key, ctx.namespace, name))) is not None:
            raise status.already_exists(resource.who(name), deleting=taken.deleting)
        obj = shaping.stored(resource, obj)
        if ctx.options.dry_run:
            return Record.parse(resource.key, encode(obj))
        return await self._store.write(resource.key, obj)

    def _check_space(self, ctx: RequestContext, meta: Obj) -> None:
        if not ctx.resource.namespaced:
            return
        space = self._store.newest(ObjectKey(NAMESPACES, "", ctx.namespace))
        if space is None:
            raise status.not_found(status.Who("", "namespaces", name=ctx.namespace))
        if space.deleting:
            told = f"unable to create new content in namespace {ctx.namespace} because it is being terminated"
            cause = Cause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {ctx.namespace} is being terminated"
            )
            raise status.forbidden(ctx.resource.who(meta.get("name", "")), told, [cause])

    async def _update(
        self, ctx: RequestContext, current: Record, obj: Obj, old: Obj, *, applied: bool = False
    ) -> Record:
        resource = ctx.resource
        shaping.check_identity(ctx, obj["metadata"], old["metadata"])
        metadata.check_namespace(obj["metadata"], ctx.namespace)
        obj = shaping.with_other_half(ctx, obj, old, applied=applied)
        self._warn_unknown(ctx, obj)
        obj = shaping.shaped(resource, obj, old)
        if obj == old:
            return current
        if not applied:
            obj = self._tracked(ctx, old, obj)
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

    def _tracked(self, ctx: RequestContext, old: Obj | None, new: Obj) -> Obj:
        return ssa.track_update(
            old,
            new,
            manager=ctx.options.manager or "unknown",
            schema=ctx.resource.schema,
            now=self._clock(),
            subresource=ctx.subresource,
        )

    def _warn_unknown(self, ctx: RequestContext, obj: Obj) -> None:
        if ctx.options.field_validation is FieldValidation.IGNORE:
            return
        unknown = [f'unknown field "{name}"' for name in ctx.resource.schema.unknown_fields(obj)]
        if unknown and ctx.options.field_validation is FieldValidation.STRICT:
            resource = ctx.resource
            subject = f"{resource.kind} in version {resource.version!r}".replace("'", '"')
            told = f"{subject} cannot be handled as a {resource.kind}: strict decoding error: {', '.join(unknown)}"
            raise status.bad_request(told)
        ctx.warnings.extend(unknown)

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
        causes += resource.schema.validate(obj, old)
        causes += resource.strategy.check(obj, old)
        if causes:
            raise status.invalid(resource.who(obj["metadata"].get("name", "")), causes)
