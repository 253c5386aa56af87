"""The cable of the hand-over tests leaves no connection behind, which would end a whole run with an error."""

import asyncio
from contextlib import suppress

import pytest

from tests.chain.cable import Cable


@pytest.mark.parametrize("turns", range(8))
def test_a_cable_that_stops_ends_connections_at_every_step_of_their_opening(turns: int) -> None:
    """Connections that are accepted, connecting onwards or open when a cable stops are all ended."""
    assert asyncio.run(_ended(turns)) == 30


async def _ended(turns: int) -> int:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    cable = Cable("127.0.0.1", server.sockets[0].getsockname()[1])
    await cable.start()
    port = int(cable.url.rpartition(":")[2])
    clients = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(30)))
    for _ in range(turns):
        await asyncio.sleep(0)
    await cable.stop()
    ended = await asyncio.gather(*(_end_of(reader) for reader, _ in clients))
    for _, writer in clients:
        writer.transport.abort()
    server.close()
    await asyncio.sleep(0.05)
    return sum(ended)


async def _end_of(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.read(), 2)
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(1024):
            writer.write(chunk)
    writer.close()
