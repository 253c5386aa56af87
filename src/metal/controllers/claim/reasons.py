"""Reasons of a claim's conditions that one module reports and another compares.

They are part of the API: `metalctl claim` and `metalctl why` read them.
"""

from enum import StrEnum

from metal.controllers.shared import condition_types


class ClaimReason(StrEnum):
    """Reasons of the conditions Bound and Ready of a ServerClaim."""

    INVALID_SELECTOR = "InvalidSelector"
    NAMESPACE_RESERVED = "NamespaceReserved"
    SERVER_IN_ERROR = "ServerInError"
    SERVER_LOST = condition_types.SERVER_LOST
