"""The aiohttp application: authentication, dispatch of requests, and error responses."""

from pathlib import Path

import structlog
from aiohttp import web

from metal.apiserver.auth.access import ANONYMOUS
from metal.apiserver.auth.service_accounts import TokenRefusedError
from metal.apiserver.auth.tokens import Tokens
from metal.apiserver.backend import Backend
from metal.apiserver.machinery import status
from metal.apiserver.machinery.users import User
from metal.apiserver.web import backup, bodies, documents, paths, render, request_info
from metal.apiserver.web.handler import USER, ResourceHandler, answer
from metal.apiserver.web.negotiate import Form, choose

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
VERSION = frozenset({"/version", "/version/"})

log = structlog.get_logger("metal.apiserver")


def application(backend: Backend, tokens: Tokens, folder: Path) -> web.Application:
    """The API over HTTP. A request without token is `system:anonymous`; a wrong token is refused.

    folder: a private folder for backups during upload and download.
    """
    backend.accounts.static = tokens.of
    dispatcher = Dispatcher(backend, backup.Snapshots(backend.store, backend.authorizer, folder))
    app = web.Application(client_max_size=bodies.SIZE_LIMIT)
    app.router.add_route("*", "/{path:.*}", dispatcher.handle)
    return app


class Dispatcher:
    """Handles every request; answers errors with a metav1.Status."""

    def __init__(self, backend: Backend, copies: backup.Snapshots) -> None:
        self._backend = backend
        self._copies = copies
        self._resources = ResourceHandler(backend)
        self._documents = documents.Documents(backend)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The handler of the one route."""
        try:
            return await self._dispatch(request)
        except status.NoSuchPathError as refused:
            return _refusal(refused) if self._in_known_group(request) else _page_not_found()
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
        user = request_info.impersonated(request, self._authenticated(request), authorizer)
        parts = paths.segments(request.rel_url.raw_path)
        target = paths.target(parts)
        # First, so that a refusal does not reveal which objects exist.
        authorizer.check(request_info.attributes(request, target, user))
        request[USER] = user
        if target is not None:
            return await self._resources.handle(request, target)
        if request.path in VERSION or f"/{parts[0] if parts else ''}" in HEALTH:
            return self._public(request)
        if request.path == backup.PATH:
            return await self._copies.handle(request)
        found = self._documents.answer(request, parts)
        if request.method != "GET":
            raise status.method_not_allowed()
        return found

    def _in_known_group(self, request: web.Request) -> bool:
        """Whether a path belongs to a built-in group."""
        match paths.segments(request.rel_url.raw_path):
            case ["api", *_]:
                return True
            case ["apis", group, *_]:
                return self._backend.registry.owns(group)
        return False

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
            return answer(render.encode(documents.version(), form), form)
        return documents.probe(self._backend.health, request.path, request.query)


def _page_not_found() -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(status=404, text="404 page not found\n", headers=headers)


def _refusal(refused: status.StatusError) -> web.Response:
    response = answer(render.encode(refused.body, Form()), Form(), refused.code)
    response.headers.update(refused.headers)
    if seconds := refused.details.get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(seconds)
    return response
