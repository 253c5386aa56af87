"""The API without a transport: every verb on every resource.

The backend assembles the parts: the store, the registry of resources, the authorizer, reader, writer and deleter, and
two background tasks, garbage collector and housekeeping. The HTTP server (`web`) and the in-process client call it.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from metal.apiserver.auth import access
from metal.apiserver.auth import service_accounts as accounts
from metal.apiserver.auth.authorizer import Authorizer
from metal.apiserver.auth.jwt import Signer
from metal.apiserver.auth.reviews import reviews
from metal.apiserver.crd import crds
from metal.apiserver.gc.collector import Collector
from metal.apiserver.gc.housekeeping import DEFAULT, Housekeeper
from metal.apiserver.kinds.builtins import builtins
from metal.apiserver.kinds.rbac import rbac_kinds
from metal.apiserver.machinery import metadata, status
from metal.apiserver.machinery.options import (
    DeleteOptions,
    FieldValidation,
    ListOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
)
from metal.apiserver.machinery.records import CRDS, NAMESPACES, Change, Event, ObjectKey, Record, ResourceKey
from metal.apiserver.machinery.registry import Registry
from metal.apiserver.machinery.resources import RequestContext, Resource
from metal.apiserver.machinery.results import Listing, WatchItem
from metal.apiserver.machinery.users import SYSTEM
from metal.apiserver.storage.journal import Journal, MemoryJournal
from metal.apiserver.storage.store import Store
from metal.apiserver.verbs import shaping
from metal.apiserver.verbs.deletes import Deleter, Deletion
from metal.apiserver.verbs.reads import Reader
from metal.apiserver.verbs.writes import Writer
from metal.kube.controller.health import Health
from metal.kube.controller.tasks import Tasks
from metal.kube.meta.clock import Clock

Obj = dict[str, Any]

DELETIONS = 256
"""Objects that deletecollection deletes concurrently."""
STORAGE_CHECK, STORAGE_RETRY = 30.0, 2.0
"""Seconds between two checks whether the disk can be written, and while it could not."""

log = structlog.get_logger("metal.apiserver")


class Backend:
    """Answers requests. `start` before the first one, `stop` after the last.

    Every method raises StatusError for what a Kubernetes API refuses, with the same reason and message, and 403 for
    what the user may not do; `authorizer` gives the same decision in advance. key: file of the key that signs tokens of
    ServiceAccounts, created when first needed; None for a key in memory. `health` has the checks of /livez and /readyz;
    `tasks` are the background tasks, of which none may end.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        journal: Journal | None = None,
        rng: random.Random | None = None,
        history: int = 5_000,
        key: Path | None = None,
    ) -> None:
        self.clock = clock
        self.health, self.tasks = Health(), Tasks("api")
        self.registry = Registry()
        self.store = Store(journal or MemoryJournal(), history=history)
        self.authorizer = Authorizer(self.store)
        rng = rng or random.SystemRandom()
        # Tokens are secrets, so their random numbers never come from a seeded source.
        self.accounts = accounts.Accounts(self.store, clock, Signer(key), random.SystemRandom())
        self._reader = Reader(self.store, rng)
        self._writer = Writer(self.store, clock, rng)
        self._deleter = Deleter(self.store, clock)
        self._collector = Collector(self.store, self.registry, self._deleter, clock)
        self._refreshes: dict[ResourceKey, asyncio.Future[None]] = {}
        self._housekeeper = Housekeeper(self.store, clock, lambda: metadata.uid(rng), self._create_default_account)
        self.health.add("storage", lambda: "the data folder cannot be written" if self.store.failure else "")
        self.health.add("api-tasks", lambda: self.tasks.failure, live=True)

    async def start(self) -> None:
        """Load the stored objects, serve them, and start the background tasks. Raises JournalError."""
        await self.store.open()
        request, review = self.accounts.resources()
        answered = (*reviews(self.authorizer, self.clock), review)
        for resource in (*builtins(request), *rbac_kinds(self.authorizer), *answered):
            self.registry.add(resource)
        self.registry.add(crds.definition(self.registry, self.clock))
        for record in self.store.collection(CRDS):
            self._serve(record)
        await self._settle_refreshes()
        self.store.listen(self._follow_definitions)
        self._collector.start()
        for name in ("default", "kube-system"):
            await self._ensure_namespace(name)
        await self._housekeeper.start()
        self.tasks.spawn("garbage collector", self._collector.run)
        self.tasks.spawn("housekeeping", self._housekeeper.run)
        self.tasks.spawn("storage check", self._check_storage)

    async def stop(self) -> None:
        """End every watch, finish pending writes, and close the journal."""
        await self.tasks.stop(grace=0.0)
        for work in self._refreshes.values():
            work.cancel()
        await self.store.close()

    async def _check_storage(self) -> None:
        """Without this, a disk that is full or gone would be noticed by the next write only."""
        while True:
            await asyncio.sleep(STORAGE_RETRY if self.store.failure else STORAGE_CHECK)
            await self.store.check()

    def _serve(self, record: Record) -> None:
        try:
            definition = record.decode()
            crds.serve(self.registry, definition)
            self._refresh(definition)
        except Exception:
            # Stored by another version of this program: its objects are not served until the CRD is installed again.
            log.exception("crd.not_served", name=record.key.name)

    def _refresh(self, definition: Obj) -> None:
        """Default and prune stored objects by the current schema, not the one that they were written with."""
        collection = crds.collection_of(definition)
        if earlier := self._refreshes.pop(collection, None):
            earlier.cancel()  # the newer schema decides
        resource = self.registry.any_version(collection)
        if resource is not None and resource.custom and definition["metadata"].get("generation", 1) > 1:
            schema = resource.schema
            work = self.store.refresh(collection, lambda obj: schema.default(schema.prune(obj)))
            self._refreshes[collection] = asyncio.ensure_future(work)

    async def _refreshed(self, record: Record) -> Record:
        """The record; when it is a CRD, after its objects have the defaults of its schema."""
        if record.key.resource == CRDS and self._refreshes:
            await self._settle_refreshes()
        return record

    async def _settle_refreshes(self) -> None:
        while self._refreshes:
            collection, work = next(iter(self._refreshes.items()))
            await asyncio.wait({work})
            if self._refreshes.get(collection) is work:
                del self._refreshes[collection]
                if not work.cancelled() and (failure := work.exception()) is not None:
                    log.error("crd.not_refreshed", name=str(collection), exc_info=failure)

    async def _ensure_namespace(self, name: str) -> None:
        if self.store.newest(ObjectKey(NAMESPACES, "", name)) is None:
            space = self.registry.find("", "v1", "namespaces")
            assert space is not None  # noqa: S101 - added a few lines above
            await self.create(RequestContext(SYSTEM, space), {"metadata": {"name": name}})

    async def _create_default_account(self, space: str) -> None:
        accounts = self.resource("", "v1", "serviceaccounts")
        await self.create(RequestContext(SYSTEM, accounts, space), {"metadata": {"name": DEFAULT}})

    def _follow_definitions(self, event: Event) -> None:
        if event.record.key.resource != CRDS:
            return
        if event.type is not Change.DELETED:
            self._serve(event.record)
            return
        collection = crds.collection_of(event.record.decode())
        self.registry.remove(collection)
        self.store.hub.drop(collection, event.resource_version)

    async def install_crds(self, definitions: Iterable[Obj]) -> None:
        """Create or update the given CRDs, as `kubectl apply --server-side --force-conflicts` does."""
        resource = self.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        options = WriteOptions(manager="metal-apiserver", force=True, field_validation=FieldValidation.STRICT)
        for crd in definitions:
            name = str(crd["metadata"]["name"])
            await self.apply(RequestContext(SYSTEM, resource, name=name, options=options), dict(crd))

    def resource(self, group: str, version: str, plural: str) -> Resource:
        """The resource at a path. Raises StatusError 404."""
        found = self.registry.find(group, version, plural)
        if found is None:
            raise status.no_such_path()
        return found

    def _check(self, ctx: RequestContext, verb: str, fields: str = "") -> None:
        if access.MASTERS not in ctx.user.groups:
            self.authorizer.check(access.of_request(ctx, verb, access.selected(fields)))

    async def get(self, ctx: RequestContext, resource_version: str = "") -> Record:
        """The newest committed version of an object, which must not be older than resource_version."""
        self._check(ctx, "get")
        return self._reader.get(ctx, resource_version)

    async def list(self, ctx: RequestContext, options: ListOptions) -> Listing:
        """A page of a collection."""
        self._check(ctx, "list", options.fields)
        return self._reader.page(ctx, options)

    def watch(self, ctx: RequestContext, options: WatchOptions) -> AsyncGenerator[WatchItem, None]:
        """Changes of a collection, in order, until the timeout or `stop`."""
        self._check(ctx, "watch", options.fields)
        return self._reader.watch(ctx, options)

    async def create(self, ctx: RequestContext, obj: Obj) -> Record:
        """Store a new object. The caller must not use the mapping afterwards."""
        self._check(ctx, "create")
        if ctx.subresource:
            return self._act(ctx, obj)
        if (review := ctx.resource.strategy.review) is not None:
            return Record.answer(ctx.resource.key, review(ctx, shaping.body(ctx, obj)))
        return await self._refreshed(await self._writer.create(ctx, obj))

    def _act(self, ctx: RequestContext, obj: Obj) -> Record:
        action = ctx.resource.actions.get(ctx.subresource)
        if action is None or action.strategy.review is None:
            raise status.no_such_path()
        return Record.answer(action.key, action.strategy.review(ctx, shaping.body(replace(ctx, resource=action), obj)))

    async def update(self, ctx: RequestContext, obj: Obj) -> Record:
        """Replace an object. The caller must not use the mapping afterwards."""
        self._check(ctx, "update")
        return await self._refreshed(await self._writer.update(ctx, obj))

    async def patch(self, ctx: RequestContext, kind: PatchType, body: Any) -> Record:
        """Change an object by a patch; PatchType.APPLY is server-side apply."""
        if kind is PatchType.APPLY:
            return await self.apply(ctx, body)
        self._check(ctx, "patch")
        return await self._refreshed(await self._writer.patch(ctx, kind, body))

    async def apply(self, ctx: RequestContext, obj: Obj) -> Record:
        """Server-side apply; creating needs permission to create. The caller must not use the mapping afterwards."""
        self._check(ctx, "patch")
        if self.store.newest(ctx.key) is None:
            self._check(ctx, "create")
        return await self._refreshed(await self._writer.apply(ctx, obj))

    async def delete(self, ctx: RequestContext, options: DeleteOptions) -> Deletion:
        """Delete an object, or mark it for deletion when it has finalizers."""
        self._check(ctx, "delete")
        return await self._deleter.delete(ctx, options)

    async def delete_collection(
        self, ctx: RequestContext, selection: ListOptions, options: DeleteOptions
    ) -> tuple[Record, ...]:
        """Delete every selected object; objects that are gone by then are skipped."""
        self._check(ctx, "deletecollection")
        chosen = self._reader.page(ctx, selection).records
        gone: list[Record] = []
        for begin in range(0, len(chosen), DELETIONS):
            # Concurrently, so that many share one transaction of the journal.
            some = (self._delete_one(ctx, record, options) for record in chosen[begin : begin + DELETIONS])
            gone += [record for record in await asyncio.gather(*some) if record is not None]
        return tuple(gone)

    async def _delete_one(self, ctx: RequestContext, record: Record, options: DeleteOptions) -> Record | None:
        one = RequestContext(ctx.user, ctx.resource, record.key.namespace, record.key.name, options=ctx.options)
        try:
            return (await self._deleter.delete(one, options)).record
        except status.StatusError as refused:
            if refused.reason != "NotFound":
                raise
            return None
