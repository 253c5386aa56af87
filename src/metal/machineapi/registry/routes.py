"""The paths of the registry, which are those of the Go operator's registry."""

from metal.machineapi.http.response import Response
from metal.machineapi.http.server import Request, Route
from metal.machineapi.registry.service import RegistryService


def routes(service: RegistryService) -> list[Route]:
    """The endpoints of the registry."""

    async def register(request: Request) -> Response:
        body = await request.read(service.settings.limits.body)
        return await service.register(request.headers.get("Authorization", ""), body, request.client)

    async def bootstate(request: Request) -> Response:
        body = await request.read(service.settings.limits.body)
        return await service.bootstate(request.headers.get("Authorization", ""), body, request.client)

    async def sanitization(request: Request) -> Response:
        body = await request.read(service.settings.limits.body)
        return await service.sanitization(request.headers.get("Authorization", ""), body, request.client)

    async def systems(request: Request) -> Response:
        return service.not_offered("systems", request.client)

    async def delete(request: Request) -> Response:
        return service.not_offered("delete", request.client)

    return [
        Route("register", "/register", ("POST",), register),
        Route("bootstate", "/bootstate", ("POST",), bootstate),
        Route("sanitization", "/sanitization", ("POST",), sanitization),
        Route("systems", "/systems/{uuid}", ("GET",), systems),
        Route("delete", "/delete/{uuid}", ("DELETE",), delete),
    ]
