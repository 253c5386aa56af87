"""What `test_sqlite.py` runs on a disk of a few megabytes: `fulldisk.py FOLDER`. Fails with an AssertionError."""

import asyncio
import sqlite3
import sys
from pathlib import Path

from metal.api.core import CONFIG_MAP
from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.errors import ApiError
from metal.kube.meta.clock import system_clock


async def fill(api: EmbeddedAPI, prefix: str) -> list[str]:
    """Create ConfigMaps until one is refused; the names of those that were acknowledged."""
    client, made = api.client(), []
    for number in range(1000):
        name = f"{prefix}{number}"
        body = {"metadata": {"name": name, "namespace": "default"}, "data": {"x": "y" * 50_000}}
        try:
            await client.create(CONFIG_MAP, body)
        except ApiError as refused:
            told = (refused.code, refused.reason, "full" in str(refused), "check free space" in str(refused))
            break
        made.append(name)
    assert told == (503, "ServiceUnavailable", True, True)
    return made


async def main(folder: Path) -> None:
    """Fill, read, make room, write, start again."""
    ballast, more = folder / "ballast", folder / "more"
    ballast.write_bytes(b"x" * 600_000)
    more.write_bytes(b"x" * 200_000)
    api = EmbeddedAPI(folder / "data", system_clock)
    await api.start()
    made = await fill(api, "first")
    assert "first5" in made, made
    assert {m.metadata.name for m in (await api.client().list(CONFIG_MAP, "default")).items} >= set(made)
    ballast.unlink()
    made += await fill(api, "second")
    assert "second5" in made, made
    await api.stop()
    again = EmbeddedAPI(folder / "data", system_clock)
    await again.start()
    kept = {m.metadata.name for m in (await again.client().list(CONFIG_MAP, "default")).items}
    assert kept >= set(made), set(made) - kept
    await again.stop()
    # SQLite needs some room to look at a write-ahead log.
    more.unlink()
    with sqlite3.connect(folder / "data" / "state.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    db.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
