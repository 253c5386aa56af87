"""Discovery, OpenAPI and version documents. Clients cache them and revalidate them by ETag."""

import sys
from collections.abc import Mapping
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

from aiohttp import web

from metal.apiserver.backend import Backend
from metal.apiserver.machinery import status
from metal.apiserver.openapi import documents, v2
from metal.apiserver.web import discovery, render
from metal.apiserver.web.handler import answer
from metal.apiserver.web.negotiate import Form, Shape, choose
from metal.kube.controller.health import Health

_YEAR = timedelta(days=365)


class Documents:
    """Answers GET on every path that is no resource. Raises StatusError for unknown paths."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._kept: dict[str, tuple[int, bytes, str]] = {}

    def answer(self, request: web.Request, parts: list[str]) -> web.Response:
        """parts: segments of the path."""
        if parts[:2] == ["openapi", "v3"]:
            return self._openapi(request, "/".join(parts[2:]))
        if parts == ["openapi", "v2"]:
            return self._openapi_v2(request)
        form = choose(request.headers.get("Accept", ""), (Shape.GROUPS,) if len(parts) == 1 else ())
        if form.shape is Shape.GROUPS and parts in (["api"], ["apis"]):
            return self._aggregated(request, form, core=parts == ["api"])
        return answer(render.encode(self._listed(parts), form), form)

    def _listed(self, parts: list[str]) -> dict[str, Any]:
        registry = self._backend.registry
        match parts:
            case ["api"]:
                return discovery.core_versions()
            case ["api", version]:
                return discovery.resources(registry, "", version)
            case ["apis"]:
                return discovery.groups(registry)
            case ["apis", group]:
                return discovery.group(registry, group)
            case ["apis", group, version]:
                return discovery.resources(registry, group, version)
        raise status.no_such_path()

    def _aggregated(self, request: web.Request, form: Form, *, core: bool) -> web.Response:
        body = discovery.aggregated(self._backend.registry, form, core=core)
        response = answer(render.encode(body, form), form)
        response.headers["Cache-Control"] = "public"
        return _cached(request, response, documents.digest(body))

    def _openapi(self, request: web.Request, path: str) -> web.Response:
        form = choose(request.headers.get("Accept", ""))
        known = {
            documents.path_of(name): name
            for group, versions in self._backend.registry.group_versions().items()
            for name in (f"{group}/{version}" if group else version for version in versions)
        }
        if not path:
            index = documents.index(known.values(), lambda name: self._document(name)[1])
            return answer(render.encode(index, form), form)
        if path not in known:
            raise status.no_such_path()
        body, digest = self._document(known[path])
        wanted = request.query.get("hash", digest)
        if wanted != digest:
            raise web.HTTPMovedPermanently(f"{request.path}?hash={digest}")
        response = answer(render.as_media(body, form), form)
        if "hash" in request.query:
            response.headers["Cache-Control"] = "public, immutable"
            response.headers["Expires"] = format_datetime(self._backend.clock() + _YEAR, usegmt=True)
        return _cached(request, response, digest)

    def _openapi_v2(self, request: web.Request) -> web.Response:
        if not any(name in request.headers.get("Accept", "") for name in (v2.MEDIA_TYPE, "*/*")):
            raise status.not_acceptable((v2.MEDIA_TYPE,))
        body = v2.document(self._backend.registry)
        return web.Response(body=body, headers={"Content-Type": v2.CONTENT_TYPE})

    def _document(self, name: str) -> tuple[bytes, str]:
        """One OpenAPI document and its hash, computed once for every generation of the registry."""
        registry = self._backend.registry
        kept = self._kept.get(name)
        if kept is None or kept[0] != registry.generation:
            group, _, version = name.rpartition("/")
            document = documents.document(name, registry.of(group, version))
            kept = (registry.generation, render.encode(document, Form()), documents.digest(document))
            self._kept[name] = kept
        return kept[1], kept[2]


def _cached(request: web.Request, response: web.Response, digest: str) -> web.Response:
    """The response with its ETag, or 304 when the client has it."""
    tag = f'"{digest}"'
    headers = {"ETag": tag, "Vary": "Accept"}
    if tag in (part.strip() for part in request.headers.get("If-None-Match", "").split(",")):
        return web.Response(status=304, headers={"Cache-Control": response.headers["Cache-Control"], **headers})
    response.headers.update(headers)
    return response


def probe(health: Health, path: str, query: Mapping[str, str]) -> web.Response:
    """The answer to /healthz, /livez or /readyz, or to one check such as /readyz/storage; 500 when a check fails.

    Raises StatusError 404 for an unknown check.
    """
    found = health.answer(path, query)
    if found is None:
        raise status.no_such_path()
    headers = {"Cache-Control": "no-cache, private"}
    return web.Response(status=200 if found.passed else 500, text=found.text, headers=headers)


def version() -> dict[str, str]:
    """version.Info. The version is that of the Kubernetes API whose behaviour is implemented."""
    return {
        "major": "1",
        "minor": "35",
        "emulationMajor": "1",
        "emulationMinor": "35",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "34",
        "gitVersion": "v1.35.4+metal",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"cpython-{sys.version_info.major}.{sys.version_info.minor}",
        "platform": sys.platform,
    }
