"""Indexes of cached objects that several controllers use."""

from collections.abc import Callable, Iterable
from functools import cache

from metal.api.claim import ServerClaim
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.machine.identity import identity_of

BY_CLAIM = "claim"
"""Index of Servers by the ServerClaim that holds them."""
BY_SERVER = "server"
"""Index of objects by the Server that their spec names."""
BY_BMC = "bmc"
"""Index of Servers by the BMC object that they name."""
BY_IDENTITY = "machine-identity"
"""Index of Servers by each key of their machine's identity."""


@cache
def identity_index(kinds: Kinds) -> Callable[[Server], Iterable[str]]:
    """Index of Servers by UUID, serial number and parts of their machine, in canonical forms."""
    return lambda server: identity_of(server, kinds).keys


def claim_index(server: Server) -> Iterable[str]:
    """Index of Servers by the claim that holds them, as namespace/name."""
    ref = server.spec.server_claim_ref
    return () if ref is None else (f"{ref.namespace}/{ref.name}",)


def bmc_index(server: Server) -> Iterable[str]:
    """Index of Servers by their BMC's name."""
    return () if server.spec.bmc_ref is None else (server.spec.bmc_ref.name,)


def server_index(claim: ServerClaim) -> Iterable[str]:
    """Index of ServerClaims by the server that they name."""
    return () if claim.spec.server_ref is None else (claim.spec.server_ref.name,)
