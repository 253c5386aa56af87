"""The paths of the boot server."""

from metal.boot.dhcp.firmware import LOADER_PATH
from metal.machineapi.bootserver.service import BootService
from metal.machineapi.http.response import Response
from metal.machineapi.http.server import Request, Route

_READ = ("GET", "HEAD")


def routes(service: BootService) -> list[Route]:
    """The endpoints of the boot server. HEAD is offered only where GET changes nothing."""

    async def chainload(request: Request) -> Response:
        return await service.chainload()

    async def script(request: Request) -> Response:
        return await service.script(request.path_parameters["uuid"], request.client)

    async def ignition(request: Request) -> Response:
        return await service.ignition(request.path_parameters["uuid"], request.query.get("token", ""), request.client)

    async def image(request: Request) -> Response:
        return await service.images.image(request.query, request.client, request.method, request.headers)

    async def loader(request: Request) -> Response:
        return await service.loaders.loader(request.path_parameters["name"], request.client)

    return [
        Route("chainload", "/ipxe", _READ, chainload),
        Route("chainload", "/ipxe/", _READ, chainload),
        Route("script", "/ipxe/{uuid}", ("GET",), script),
        Route("ignition", "/ignition/{uuid}", ("GET",), ignition),
        Route("loader", f"{LOADER_PATH}/{{name}}", _READ, loader),
        Route("image", "/image", _READ, image),
    ]
