"""Resolves a `BMCEndpoint` from API objects: address, credentials and which certificate is accepted."""

from dataclasses import dataclass, field

from metal.api.bmc import BMC, BMCSecret, Protocol, TLSPolicy
from metal.api.endpoint import Endpoint
from metal.api.server import InlineBMC, Server
from metal.bmc.pool import BMCEndpoint
from metal.controllers.shared.access import secret_use
from metal.controllers.shared.access.enrolment_policy import PENDING_APPROVAL, EnrolmentPolicy, approval_text
from metal.controllers.shared.access.problem import Problem

NOT_PINNED = "CertificateNotPinned"
"""Reason of the Problem that is solved by pinning the certificate that the BMC presents."""
PROTOCOLS = ("Redfish", "RedfishLocal", "RedfishWithRegistryPatch")
"""Names of the only supported protocol; the Go operator's development variants mean the same here."""


@dataclass(frozen=True)
class BMCEndpointDefaults:
    """Defaults for BMCs that do not set these fields themselves."""

    scheme: str = "https"
    """https or http. http sends credentials in plain text and must be configured explicitly."""
    verify: bool = True
    """Whether the certificate of a BMC without spec.tls is verified; otherwise the first one is pinned."""
    trust_on_first_use: bool = False
    """Whether the first certificate of a BMC object without spec.tls is pinned."""
    ca_pem: str = field(default="", repr=False)
    """Certificates (PEM) that sign BMCs' certificates, beside those of the system."""
    policy: EnrolmentPolicy = field(default_factory=EnrolmentPolicy)
    """Where BMCs may be, and which of them wait for an approval."""
    authorities: dict[str, str] = field(default_factory=dict, repr=False)
    """PEM text by name of the Secret, for tls.caSecretRef. `authorities` fills it; all share this one."""


@dataclass(frozen=True)
class Credentials:
    """User name and password of a BMC."""

    username: str = field(repr=False)
    password: str = field(repr=False)


def endpoint_for_bmc(
    bmc: BMC, endpoint: Endpoint | None, secret: BMCSecret | None, defaults: BMCEndpointDefaults
) -> BMCEndpoint | Problem:
    """The endpoint of a BMC object, with its name as key; endpoint and secret are those that it references."""
    if defaults.policy.is_pending(bmc.metadata.annotations):
        return Problem(PENDING_APPROVAL, f"waiting for {approval_text(bmc.metadata.name)}")
    spec, seen = bmc.spec, bmc.status.certificate
    trust = trust_of(spec.tls, defaults)
    user = secret_use.user_of_bmc(bmc, secret)
    if isinstance(trust, FirstUse):
        trust = Trust(verify=True, fingerprint=seen.sha256) if seen is not None else _NOT_PINNED
    address = address_of_bmc(bmc, endpoint)
    return _resolve(user, address, spec.protocol, trust, spec.bmc_secret_ref.name, secret, defaults)


def address_of_bmc(bmc: BMC, endpoint: Endpoint | None) -> str | Problem:
    """The IP address of a BMC object. endpoint is the one that it references, if it exists."""
    spec = bmc.spec
    if spec.endpoint_ref is not None:
        return endpoint_address(spec.endpoint_ref.name, endpoint)
    return _require_address((spec.access.ip if spec.access else "") or "", "spec.access.ip")


def is_encrypted(protocol: Protocol, defaults: BMCEndpointDefaults) -> bool:
    """Whether the BMC is contacted over TLS."""
    return (protocol.scheme or defaults.scheme).lower() == "https"


def endpoint_for_inline(
    server: Server, endpoint: Endpoint | None, secret: BMCSecret | None, defaults: BMCEndpointDefaults
) -> BMCEndpoint | Problem:
    """The endpoint in a Server's spec.bmc, with the key `server/<name>`, which no BMC object can have."""
    inline = server.spec.bmc
    if inline is None:
        return Problem("BMCNotSet", "spec.bmcRef and spec.bmc are both empty: set one of them")
    address = _inline_address(inline, endpoint)
    user = secret_use.user_of_server(server, secret)
    trust = trust_of(inline.tls, defaults)
    if isinstance(trust, FirstUse):
        trust = _without_pin(inline.tls, defaults)
    return _resolve(user, address, inline.protocol, trust, inline.bmc_secret_ref.name, secret, defaults)


def endpoint_address(name: str, endpoint: Endpoint | None) -> str | Problem:
    """The IP address of the Endpoint with this name."""
    if endpoint is None:
        return Problem("EndpointNotFound", f"Endpoint {name} does not exist: create it or correct endpointRef")
    return _require_address(endpoint.spec.ip or "", f"spec.ip of Endpoint {name}")


def credentials(name: str, secret: BMCSecret | None) -> Credentials | Problem:
    """User name and password of a BMCSecret; stringData overrides data, as in a core Secret."""
    if not name:
        return Problem("SecretNotSet", "bmcSecretRef.name is empty: name the BMCSecret with username and password")
    if secret is None:
        return Problem(
            "SecretNotFound", f"BMCSecret {name} does not exist: create it with the keys username and password"
        )
    username = _value(secret, "username")
    if isinstance(username, Problem):
        return username
    password = _value(secret, "password")
    return password if isinstance(password, Problem) else Credentials(username, password)


def _inline_address(inline: InlineBMC, endpoint: Endpoint | None) -> str | Problem:
    if inline.endpoint_ref is not None and not inline.address:
        return endpoint_address(inline.endpoint_ref.name, endpoint)
    return _require_address(inline.address, "spec.bmc.address")


def _require_address(address: str, field_name: str) -> str | Problem:
    return address or Problem("AddressMissing", f"{field_name} is empty: the address of the BMC is not known")


def _resolve(
    user: secret_use.User,
    address: str | Problem,
    protocol: Protocol,
    trust: "Trust | Problem",
    secret_name: str,
    secret: BMCSecret | None,
    defaults: BMCEndpointDefaults,
) -> BMCEndpoint | Problem:
    if protocol.name not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        return Problem("ProtocolNotSupported", f"protocol.name is {protocol.name!r}; it must be one of {known}")
    if not protocol.port:
        return Problem("PortNotSet", "protocol.port is 0: set the port of the management service, usually 443")
    if isinstance(address, Problem):
        return address
    if outside := defaults.policy.outside(address):
        return Problem("AddressNotAllowed", outside)
    login = credentials(secret_name, secret)
    if isinstance(login, Problem):
        return login
    if secret is not None and (refused := secret_use.refusal(user, secret, defaults.policy.bound_to)) is not None:
        return refused
    if isinstance(trust, Problem):
        if is_encrypted(protocol, defaults):
            return trust
        trust = Trust(verify=True)
    return BMCEndpoint(
        user.name, address, protocol.port, (protocol.scheme or defaults.scheme).lower(), login.username, login.password,
        trust.verify, trust.ca_pem, trust.fingerprint,
    )  # fmt: skip


@dataclass(frozen=True)
class Trust:
    """Which certificate of a BMC is accepted."""

    verify: bool
    ca_pem: str = field(default="", repr=False)
    fingerprint: str = ""


@dataclass(frozen=True)
class FirstUse:
    """Only the certificate that the BMC presented first is accepted."""


_NOT_PINNED = Problem(
    NOT_PINNED, "the BMC has not presented its certificate yet: it is pinned when the BMC presents it"
)
_NOWHERE_TO_PIN = Problem(
    "TrustOnFirstUseNotPossible",
    "spec.bmc.tls.trustOnFirstUse needs a BMC object that stores the certificate: create one and set"
    " spec.bmcRef, or set spec.bmc.tls.fingerprint",
)


_NOT_VERIFIED = Problem(
    "TLSNotVerified",
    "bmc.verify is false in the configuration, and a certificate can only be pinned for a BMC object: create one and "
    "set spec.bmcRef, or set spec.bmc.tls.fingerprint",
)


def _without_pin(tls: TLSPolicy | None, defaults: BMCEndpointDefaults) -> Trust | Problem:
    """The certificate policy where there is no object that stores a pin."""
    if tls is not None:
        return _NOWHERE_TO_PIN
    return Trust(verify=True, ca_pem=defaults.ca_pem) if defaults.verify else _NOT_VERIFIED


def trust_of(tls: TLSPolicy | None, defaults: BMCEndpointDefaults) -> Trust | FirstUse | Problem:
    """The certificate policy in spec.tls of a BMC, or the default."""
    if tls is None:
        first = defaults.trust_on_first_use or not defaults.verify
        return FirstUse() if first else Trust(verify=True, ca_pem=defaults.ca_pem)
    if tls.trust_on_first_use:
        return FirstUse()
    if tls.insecure_skip_verify:
        return Trust(verify=False)
    if tls.fingerprint:
        return Trust(verify=True, fingerprint=tls.fingerprint.replace(":", "").lower())
    if tls.ca_secret_ref is None:
        return Trust(verify=True, ca_pem=defaults.ca_pem)
    name = tls.ca_secret_ref.name
    pem = defaults.authorities.get(name)
    if not pem:
        return Problem(
            "CANotFound",
            f"tls.caSecretRef names the Secret {name}, which has no key ca.crt in the manager's namespace: create it",
        )
    return Trust(verify=True, ca_pem=pem)


def _value(secret: BMCSecret, key: str) -> str | Problem:
    name = secret.metadata.name
    try:
        text = secret.string_data.get(key) or secret.data.get(key, b"").decode()
    except UnicodeDecodeError:
        return Problem("CredentialsInvalid", f"{key} in BMCSecret {name} is not UTF-8 text: write it again")
    if not text:
        return Problem("CredentialsMissing", f"BMCSecret {name} has no {key}: add the key {key} to its data")
    if any(character in text for character in "\r\n\0"):
        return Problem(
            "CredentialsInvalid",
            f"{key} in BMCSecret {name} contains a line break or NUL: write it without (printf instead of echo)",
        )
    return text
