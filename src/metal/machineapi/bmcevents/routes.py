"""The path of the event receiver."""

from metal.machineapi.bmcevents.receiver import EventReceiver
from metal.machineapi.http.response import Response
from metal.machineapi.http.server import Request, Route


def routes(receiver: EventReceiver) -> list[Route]:
    """The endpoint for events. A body is read only after the token was verified."""

    async def events(request: Request) -> Response:
        refusal = receiver.admit(request.path_parameters["bmc"], request.path_parameters["token"], request.client)
        if refusal is not None:
            return refusal
        await request.read(receiver.settings.body)
        return receiver.accept(request.path_parameters["bmc"])

    return [Route("events", "/events/{bmc}/{token}", ("POST",), events)]
