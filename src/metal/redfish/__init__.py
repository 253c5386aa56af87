"""An async Redfish client (DSP0266, DSP0268) that tolerates the deviations of real BMCs.

Knows no Kubernetes and imports nothing else of the project. Start with `client` (one BMC's resources as JSON), then
`session` (login) and `http` (the transport). `resources` has typed views of the resources, `decode` fills them.
"""

from metal.redfish.client import Limits, Permit, RedfishClient, Reply, Resource
from metal.redfish.collections import members, resolve
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
from metal.redfish.http import HTTPTransport
from metal.redfish.tls import Trust
from metal.redfish.transport import ConnectionDropped, Response, Transport

__all__ = [
    "BMCAuthError",
    "BMCBadRequest",
    "BMCBusy",
    "BMCCertificateChanged",
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
    "ConnectionDropped",
    "HTTPTransport",
    "Limits",
    "Permit",
    "RedfishClient",
    "Reply",
    "Resource",
    "Response",
    "Transport",
    "Trust",
    "members",
    "resolve",
]
