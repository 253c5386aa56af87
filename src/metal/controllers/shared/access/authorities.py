"""Reads the CA certificates that `tls.caSecretRef` of a BMC names, for a BMC object and for `spec.bmc` of a Server."""

from metal.api.bmc import TLSPolicy
from metal.api.core import SECRET
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults
from metal.controllers.shared.scope import Context
from metal.kube.client.errors import NotFound
from metal.kube.client.withheld import withheld
from metal.kube.meta.permissions import Permission, Where


async def read(context: Context, namespace: str, tls: TLSPolicy | None, defaults: BMCEndpointDefaults) -> None:
    """Keep the certificates in `defaults.authorities`; those of a deleted Secret are removed. Raises ApiError."""
    if tls is None or tls.ca_secret_ref is None:
        return
    name, authorities = tls.ca_secret_ref.name, defaults.authorities
    try:
        with withheld():
            secret = await context.client.get(SECRET, name, namespace)
    except NotFound:
        authorities.pop(name, None)
        return
    authorities[name] = secret.data.get("ca.crt", b"").decode(errors="replace")


def required_permissions() -> tuple[Permission, ...]:
    """Permissions of this module. The Secret's name follows from an object."""
    why = "reads the CA certificates that tls.caSecretRef of a BMC names"
    return (Permission(SECRET, ("get",), why, where=Where.HOME),)
