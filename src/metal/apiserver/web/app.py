"""The aiohttp application: who may come in, where requests go, what refusals look like."""

import sys
from pathlib import Path

import structlog
from aiohttp import web

from metal.apiserver import openapi, status
from metal.apiserver.access import ANONYMOUS
from metal.apiserver.accounts import TokenRefusedError
from metal.apiserver.auth import Tokens
from metal.apiserver.backend import Backend
from metal.apiserver.requests import User
from metal.apiserver.web import bodies, discovery, openapi2, paths, render, requestinfo, snapshots
from metal.apiserver.web.handler import USER, ResourceHandler, answer
from metal.apiserver.web.negotiate import Form, Shape, choose

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
VERSION = frozenset({"/version", "/version/"})

log = structlog.get_logger("metal.apiserver")


def application(backend: Backend, tokens: Tokens, folder: Path) -> web.Application:
    """The API over HTTP. Who sends no token is `system:anonymous`; a wrong one is refused.

    folder: a private one, for copies on their way in and out.
    """
    backend.accounts.static = tokens.of
    front = Front(backend, snapshots.Snapshots(backend.store, backend.authorizer, folder))
    app = web.Application(client_max_size=bodies.SIZE_LIMIT)
    app.router.add_route("*", "/{path:.*}", front.handle)
    return app


class Front:
    """Takes every request; answers a metav1.Status for whatever goes wrong."""

    def __init__(self, backend: Backend, copies: snapshots.Snapshots) -> None:
        self._backend = backend
        self._copies = copies
        self._resources = ResourceHandler(backend)
        self._documents: dict[str, tuple[int, bytes, str]] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The handler of the one route."""
        try:
            return await self._dispatch(request)
        except status.StatusError as refused:
            return _refusal(refused)
        except web.HTTPRequestEntityTooLarge:
            return _refusal(status.too_large())
        except web.HTTPException:
            raise
        except ConnectionResetError:
            raise
        except Exception as error:
            log.exception("request.failed", method=request.method, path=request.path)
            return _refusal(status.internal(f"{type(error).__name__}; the server's log says more"))

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        authorizer = self._backend.authorizer
        user = requestinfo.impersonated(request, self._authenticated(request), authorizer)
        parts = paths.segments(request.rel_url.raw_path)
        target = paths.target(parts)
        # Before anything else is looked at: a refusal tells nothing about what there is.
        authorizer.check(requestinfo.attributes(request, target, user))
        request[USER] = user
        if target is not None:
            return await self._resources.handle(request, target)
        if request.path in HEALTH | VERSION:
            return self._public(request)
        if request.path == snapshots.PATH:
            return await self._copies.handle(request)
        if request.method != "GET":
            raise status.method_not_allowed()
        return self._document(request, parts)

    def _authenticated(self, request: web.Request) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        try:
            found = self._backend.accounts.authenticate(token.strip())
        except TokenRefusedError:
            found = None
        if found is None:
            raise status.unauthorized()
        return found.user

    def _public(self, request: web.Request) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        if request.path in VERSION:
            form = choose(request.headers.get("Accept", ""))
            return answer(render.encode(_version(), form), form)
        return web.Response(text="ok")

    def _document(self, request: web.Request, parts: list[str]) -> web.Response:
        if parts[:2] == ["openapi", "v3"]:
            return self._openapi(request, "/".join(parts[2:]))
        if parts == ["openapi", "v2"]:
            return self._openapi_v2(request)
        form = choose(request.headers.get("Accept", ""), (Shape.GROUPS,) if len(parts) == 1 else ())
        registry = self._backend.registry
        if form.shape is Shape.GROUPS and parts in (["api"], ["apis"]):
            body = discovery.aggregated(registry, form, core=parts == ["api"])
        elif parts == ["api"]:
            body = discovery.core_versions()
        elif parts == ["apis"]:
            body = discovery.groups(registry)
        elif len(parts) == 2 and parts[0] == "api":
            body = discovery.resources(registry, "", parts[1])
        elif len(parts) == 2 and parts[0] == "apis":
            body = discovery.group(registry, parts[1])
        elif len(parts) == 3 and parts[0] == "apis":
            body = discovery.resources(registry, parts[1], parts[2])
        else:
            raise status.no_such_path()
        return answer(render.encode(body, form), form)

    def _openapi(self, request: web.Request, path: str) -> web.Response:
        form = choose(request.headers.get("Accept", ""))
        known = {
            openapi.path_of(name): name
            for group, versions in self._backend.registry.group_versions().items()
            for name in (f"{group}/{version}" if group else version for version in versions)
        }
        if not path:
            index = openapi.index(known.values(), lambda name: self._openapi_document(name)[1])
            return answer(render.encode(index, form), form)
        if path not in known:
            raise status.no_such_path()
        body, digest = self._openapi_document(known[path])
        response = answer(render.as_media(body, form), form)
        response.headers["ETag"] = f'"{digest}"'
        return response

    def _openapi_v2(self, request: web.Request) -> web.Response:
        if not any(name in request.headers.get("Accept", "") for name in (openapi2.MEDIA_TYPE, "*/*")):
            raise status.not_acceptable((openapi2.MEDIA_TYPE,))
        body = openapi2.document(self._backend.registry)
        return web.Response(body=body, headers={"Content-Type": openapi2.CONTENT_TYPE})

    def _openapi_document(self, name: str) -> tuple[bytes, str]:
        """One document and its hash, made once for every state of the registry."""
        registry = self._backend.registry
        kept = self._documents.get(name)
        if kept is None or kept[0] != registry.generation:
            group, _, version = name.rpartition("/")
            document = openapi.document(name, registry.of(group, version))
            kept = (registry.generation, render.encode(document, Form()), openapi.digest(document))
            self._documents[name] = kept
        return kept[1], kept[2]


def _refusal(refused: status.StatusError) -> web.Response:
    response = answer(render.encode(refused.body, Form()), Form(), refused.code)
    response.headers.update(refused.headers)
    if seconds := refused.details.get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(seconds)
    return response


def _version() -> dict[str, str]:
    """version.Info. The minor version is that of the Kubernetes API whose behaviour is offered."""
    return {
        "major": "1",
        "minor": "35",
        "gitVersion": "v1.35.4+metal",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"cpython-{sys.version_info.major}.{sys.version_info.minor}",
        "platform": sys.platform,
    }
