"""Indexes of cached objects that several controllers use."""

from collections.abc import Iterable

from metal.api.claim import ServerClaim
from metal.api.server import Server

BY_CLAIM = "claim"
"""Index of Servers by the ServerClaim that holds them."""
BY_SERVER = "server"
"""Index of objects by the Server that their spec names."""


def claim_index(server: Server) -> Iterable[str]:
    """Index of Servers by the claim that holds them, as namespace/name."""
    ref = server.spec.server_claim_ref
    return () if ref is None else (f"{ref.namespace}/{ref.name}",)


def server_index(claim: ServerClaim) -> Iterable[str]:
    """Index of ServerClaims by the server that they name."""
    return () if claim.spec.server_ref is None else (claim.spec.server_ref.name,)
