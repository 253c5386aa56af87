"""The one path of the event receiver."""

from metal.machineapi.bmcevents.receiver import EventReceiver
from metal.machineapi.http.response import Answer
from metal.machineapi.http.server import Request, Route


def routes(receiver: EventReceiver) -> list[Route]:
    """What BMCs may send. The body is only read from who has the token."""

    async def events(request: Request) -> Answer:
        refusal = receiver.admit(request.parts["bmc"], request.parts["token"], request.client)
        if refusal is not None:
            return refusal
        await request.read(receiver.settings.body)
        return receiver.accept(request.parts["bmc"])

    return [Route("events", "/events/{bmc}/{token}", ("POST",), events)]
