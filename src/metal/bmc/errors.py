"""Errors that the capabilities raise: those of the Redfish client, and one of SSH."""

from metal.redfish.errors import (
    BMCAuthError,
    BMCBadRequest,
    BMCBusy,
    BMCCertificateChanged,
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
    "BMCCertificateChanged",
    "BMCConflict",
    "BMCError",
    "BMCForbidden",
    "BMCHostKeyChanged",
    "BMCManagerNotFound",
    "BMCNotFound",
    "BMCNotSupported",
    "BMCProtocolError",
    "BMCServerError",
    "BMCTLSError",
    "BMCTimeout",
    "BMCUnreachable",
]


class BMCManagerNotFound(BMCNotFound):
    """No manager of the BMC has the UUID that was asked for."""

    reason = "ManagerNotFound"


class BMCHostKeyChanged(BMCError):
    """The SSH host key is not the pinned one; `seen` is the SHA-256 of the key that the host presented."""

    reason = "HostKeyChanged"
    permanent = True

    def __init__(self, pinned: str, seen: str, address: str) -> None:
        super().__init__(f"The SSH host key of {address} is {seen or 'unknown'} and was {pinned or 'never pinned'}.")
        self.seen = seen
