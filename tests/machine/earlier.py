"""Servers and claims as version 0.1 wrote them, recorded at several points of one life."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from metal.api.claim import ServerClaim
from metal.api.server import Server

_FILE = Path(__file__).with_name("earlier_statuses.json")


@dataclass(frozen=True)
class Stage:
    """The objects at one point."""

    server: Server
    claims: tuple[ServerClaim, ...]


EARLIER = msgspec.json.decode(_FILE.read_bytes(), type=dict[str, Stage])
"""By the name of the point."""
