"""The errors a controller meets, under the names of the layer below."""

from metal.redfish.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCBusy,
    BMCConflict,
    BMCError,
    BMCForbidden,
    BMCNotFound,
    BMCNotSupported,
    BMCProtocolError,
    BMCServerError,
    BMCTimeout,
    BMCTLSError,
    BMCUnreachable,
)

__all__ = [
    "BMCAuthError",
    "BMCBadRequest",
    "BMCBusy",
    "BMCConflict",
    "BMCError",
    "BMCForbidden",
    "BMCNotFound",
    "BMCNotSupported",
    "BMCProtocolError",
    "BMCServerError",
    "BMCTLSError",
    "BMCTimeout",
    "BMCUnreachable",
]
