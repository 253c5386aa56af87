"""Requests to resources: from aiohttp to the backend and back."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from metal.apiserver.backend import Backend
from metal.apiserver.machinery import status
from metal.apiserver.machinery.options import PatchType, WatchOptions
from metal.apiserver.machinery.records import ObjectKey, Record
from metal.apiserver.machinery.resources import RequestContext, Resource
from metal.apiserver.machinery.results import ItemType, Listing
from metal.apiserver.machinery.users import User
from metal.apiserver.verbs.deletes import Deletion
from metal.apiserver.web import bodies, duplicates, options, render
from metal.apiserver.web.negotiate import JSON, Form, Shape, choose
from metal.apiserver.web.parsing import Parsing
from metal.apiserver.web.paths import Target

STALL_SECONDS = 60.0
"""A watch whose client reads nothing for so long is closed; the client lists again."""
_MOST_WARNINGS, _LONGEST_WARNING = 50, 256
"""Maximum of warnings, and of characters of one: clients refuse headers of more than some kilobytes."""

log = structlog.get_logger("metal.apiserver")
USER: web.RequestKey[User] = web.RequestKey("user", User)
Answer = Awaitable[web.StreamResponse]


class ResourceHandler:
    """Answers requests to resource paths."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._parsing = Parsing()

    async def handle(self, request: web.Request, target: Target) -> web.StreamResponse:
        """Answer a request for a resource, by its method and subresource. Raises StatusError."""
        resource = self._backend.resource(target.group, target.version, target.plural)
        served = {*resource.actions, *(("status",) if resource.status else ())}
        if target.subresource and target.subresource not in served:
            raise status.not_found(resource.who(target.name)) if resource.custom else status.no_such_path()
        if target.namespace and not resource.namespaced:
            raise status.no_such_path()
        user_agent = request.headers.get("User-Agent", "")
        ctx = RequestContext(
            request[USER],
            resource,
            target.namespace,
            target.name,
            target.subresource,
            options.writing(request.query, user_agent, request.method),
        )
        if resource.deprecated:
            ctx.warnings.append(resource.deprecated)
        run = self._verb(request, ctx)
        # Before the write: a client that cannot read the response would assume that nothing was written.
        _choose(request, ctx)
        return await run(request, ctx)

    def _verb(self, request: web.Request, ctx: RequestContext) -> Callable[[web.Request, RequestContext], Answer]:
        if ctx.subresource in ctx.resource.actions:
            if request.method != "POST":
                raise status.method_not_allowed()
            return self._create
        custom, named = ctx.resource.custom, bool(ctx.name)
        verb, method = {
            ("GET", True): ("get", self._get),
            ("GET", False): ("list", self._list),
            ("POST", False): ("create", self._create),
            # kube-apiserver takes the name of a new custom object from its body, not from the path.
            ("POST", custom): ("create", self._create),
            ("PUT", True): ("update", self._update),
            ("PATCH", True): ("patch", self._patch),
            ("DELETE", True): ("delete", self._delete),
            ("DELETE", False): ("deletecollection", self._delete_all),
        }.get((request.method, named), ("", None))
        _check_verb(ctx, verb, request.method)
        if method is None:
            raise status.method_not_allowed()
        if verb == "list" and options.flag(request.query, "watch"):
            return self._watch
        return method

    def _renderer(self, request: web.Request, resource: Resource, form: Form) -> render.Renderer:
        include = request.query.get("includeObject", "")
        if form.shape is Shape.TABLE and include not in ("", "Metadata", "Object", "None"):
            message = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise status.bad_request(f"Unable to convert to Table as requested: {message}")
        return render.Renderer(resource, form, now=self._backend.clock(), include=include)

    def _object(self, request: web.Request, ctx: RequestContext, record: Record, code: int = 200) -> web.Response:
        form = _choose(request, ctx)
        return answer(self._renderer(request, ctx.resource, form).one(record), form, code, ctx.warnings)

    async def _get(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        record = await self._backend.get(ctx, request.query.get("resourceVersion", ""))
        return self._object(request, ctx, record)

    async def _list(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        form = _choose(request, ctx)
        listing = await self._backend.list(ctx, options.listing(request.query))
        return answer(self._renderer(request, ctx.resource, form).many(listing), form, 200, ctx.warnings)

    async def _create(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        return self._object(request, ctx, await self._backend.create(ctx, await self._sent(request, ctx)), 201)

    async def _update(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        return self._object(request, ctx, await self._backend.update(ctx, await self._sent(request, ctx)))

    async def _sent(self, request: web.Request, ctx: RequestContext) -> Any:
        raw, content_type = await self._parsing.read(request, request[USER]), request.headers.get("Content-Type", "")
        return await self._parsing.run(request[USER], content_type, raw, partial(_read, ctx, content_type, raw))

    async def _patch(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        raw, content_type = await self._parsing.read(request, request[USER]), request.headers.get("Content-Type", "")
        kind, body = await self._parsing.run(
            request[USER], content_type, raw, partial(_read_patch, ctx, content_type, raw)
        )
        existed = self._backend.store.newest(ObjectKey(ctx.resource.key, ctx.namespace, ctx.name)) is not None
        record = await self._backend.patch(ctx, kind, body)
        return self._object(request, ctx, record, 200 if existed else 201)

    async def _delete_options(self, request: web.Request) -> object:
        body, content_type = await self._parsing.read(request, request[USER]), request.headers.get("Content-Type", "")
        if not body.strip():
            return None
        return await self._parsing.run(request[USER], content_type, body, partial(bodies.read, content_type, body))

    async def _delete(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        wanted = options.deleting(request.query, await self._delete_options(request))
        deletion: Deletion = await self._backend.delete(ctx, wanted)
        if not deletion.gone:
            return self._object(request, ctx, deletion.record)
        who = status.Who(ctx.resource.group, ctx.resource.plural, name=ctx.name, uid=deletion.record.uid)
        form = _choose(request, ctx)
        return answer(render.encode(status.success(who), form), form)

    async def _delete_all(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        wanted = options.deleting(request.query, await self._delete_options(request))
        records = await self._backend.delete_collection(ctx, options.listing(request.query), wanted)
        form = _choose(request, ctx)
        listing = Listing(list(records), self._backend.store.version)
        return answer(self._renderer(request, ctx.resource, form).many(listing), form)

    async def _watch(self, request: web.Request, ctx: RequestContext) -> web.StreamResponse:
        form = _choose(request, ctx)._replace(media=JSON)
        wanted = options.watching(request.query)
        if ctx.name:
            wanted = _only(wanted, ctx.name)
        watch = self._backend.watch(ctx, wanted)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        lines = _Lines(self._renderer(request, ctx.resource, form), response, partial(response.prepare, request))
        try:
            await lines.open_soon()
            async with aclosing(watch) as items:
                async for item in items:
                    await lines.send(item.type, item.record, item.resource_version, initial_end=item.initial_end)
        except status.StatusError as refused:
            await lines.refuse(refused)
        except (ConnectionResetError, TimeoutError):
            log.debug("watch.cut", resource=str(ctx.resource.key))
        return response


def _check_verb(ctx: RequestContext, verb: str, method: str) -> None:
    """Raises StatusError 404 or 405, and 400 for a write to a custom object without a name. verb: "" for none."""
    resource = ctx.resource
    # Only reads cross namespaces.
    crosses = resource.namespaced and not ctx.namespace and not ctx.name and verb != "list"
    if not resource.custom:
        if crosses or verb not in resource.verbs or (ctx.subresource and verb == "delete"):
            raise status.method_not_allowed()
    elif crosses:
        raise status.no_such_path()
    elif not ctx.name and method in ("PUT", "PATCH"):
        raise status.bad_request("name must be provided")
    elif not verb or (ctx.subresource and verb in ("create", "delete")):
        raise status.not_supported(ctx.who, verb)


def _choose(request: web.Request, ctx: RequestContext) -> Form:
    """The format of the response. Raises StatusError 406."""
    many = not ctx.name and request.method in ("GET", "DELETE")
    watch = many and request.method == "GET" and options.flag(request.query, "watch")
    shapes = render.LIST_SHAPES if many and not watch else render.OBJECT_SHAPES
    return choose(request.headers.get("Accept", ""), shapes)


def _read_patch(ctx: RequestContext, content_type: str, raw: bytes) -> tuple[PatchType, Any]:
    """Kind and value of a patch."""
    kind, body = bodies.read_patch(content_type, raw, custom=ctx.resource.custom)
    if kind is PatchType.APPLY:
        ctx.warnings.extend(duplicates.applied(raw, body, ctx.options.field_validation))
    else:
        ctx.duplicates.extend(duplicates.messages(raw, body, json_patch=kind is PatchType.JSON))
    return kind, body


def _read(ctx: RequestContext, content_type: str, raw: bytes) -> Any:
    """The body of a create or an update."""
    obj = bodies.read(content_type, raw, ctx.resource.kind)
    media = bodies.media_type(content_type)
    if media == JSON:
        ctx.duplicates.extend(duplicates.messages(raw, obj))
    elif media in bodies.YAML:
        ctx.duplicates.extend(duplicates.posted_yaml(raw, ctx.options.field_validation))
    return obj


def _only(wanted: WatchOptions, name: str) -> WatchOptions:
    fields = f"metadata.name={name}"
    return WatchOptions(**{**wanted.__dict__, "fields": f"{wanted.fields},{fields}" if wanted.fields else fields})


class _Lines:
    """The stream of a watch."""

    def __init__(
        self, renderer: render.Renderer, response: web.StreamResponse, prepare: Callable[[], Awaitable[object]]
    ) -> None:
        self._renderer = renderer
        self._response = response
        self._prepare = prepare
        self._first = True

    async def open_soon(self) -> None:
        """Send the headers, so that the client knows that its watch is established."""
        await self._prepare()

    async def send(self, kind: ItemType, record: Record | None, version: int, *, initial_end: bool) -> None:
        """Send one event. Raises TimeoutError when the client reads nothing."""
        if record is None:
            line = self._renderer.bookmark(version, initial_end=initial_end)
        else:
            line = self._renderer.event(kind.value, record, first=self._first)
            self._first = False
        await self._write(line)

    async def refuse(self, refused: status.StatusError) -> None:
        """Send the last event of a watch that cannot continue."""
        await self._write(b'{"type":"ERROR","object":%s}\n' % render.encode(refused.body, Form()))

    async def _write(self, line: bytes) -> None:
        async with asyncio.timeout(STALL_SECONDS):
            await self._response.write(line)


def answer(body: bytes, form: Form, code: int = 200, warnings: list[str] | None = None) -> web.Response:
    """A complete answer."""
    response = web.Response(body=body, status=code, headers={"Content-Type": form.content_type})
    response.headers["Cache-Control"] = "no-cache, private"
    for text in (warnings or ())[:_MOST_WARNINGS]:
        response.headers.add("Warning", f'299 - "{_quoted(text)}"')
    return response


def _quoted(text: str) -> str:
    """Text that is safe in a header: names of unknown fields come from the client and can have line breaks."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return plain[:_LONGEST_WARNING].replace("\\", "\\\\").replace('"', '\\"')
