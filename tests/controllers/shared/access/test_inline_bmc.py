"""`spec.bmc` of a Server is held to the rules for BMC objects: networks, certificates, BMCSecrets."""

import ipaddress
from typing import Any

import msgspec
import pytest

from metal.api.bmc import BMCSecret
from metal.api.endpoint import Endpoint
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults, endpoint_for_inline
from metal.controllers.shared.access.enrolment_policy import EnrolmentPolicy
from tests.controllers.shared.access.test_bmc_endpoint import by_tls_policy, made, refused, secret, server

INSIDE = BMCEndpointDefaults(policy=EnrolmentPolicy(networks=(ipaddress.ip_network("192.0.2.0/24"),)))


@pytest.mark.parametrize(
    "address", ["198.51.100.1", "::ffff:198.51.100.1", "2001:db8::1", "bmc.example.org", "192.0.2.1.example.org"]
)
@pytest.mark.behaviour("BMC", "`enrolment.networks` applies to `spec.bmc` of a Server as to a BMC object.")
def test_an_inline_address_outside_of_the_networks_is_refused(address: str) -> None:
    """A host name is refused, too: what it resolves to is not known. The message names the option."""
    problem = refused(endpoint_for_inline(server(address=address), None, secret(), INSIDE))
    assert problem.reason == "AddressNotAllowed"
    assert "enrolment.networks" in problem.message


@pytest.mark.parametrize(("ip", "allowed"), [("192.0.2.7", True), ("198.51.100.7", False)])
def test_the_address_of_an_inline_endpoint_must_be_in_the_networks(ip: str, allowed: bool) -> None:
    """Its address comes from a lease."""
    endpoint = msgspec.convert({"metadata": {"name": "e"}, "spec": {"ip": ip}}, Endpoint)
    found = endpoint_for_inline(server(address="", endpointRef={"name": "e"}), endpoint, secret(), INSIDE)
    assert (made(found).address == ip) if allowed else (refused(found).reason == "AddressNotAllowed")


@by_tls_policy
def test_the_tls_policy_of_an_inline_bmc_counts(
    policy: dict[str, Any], verify: bool, ca: str, fingerprint: str
) -> None:
    """As for a BMC object."""
    defaults = BMCEndpointDefaults(verify=False, ca_pem="OURS", authorities={"ca": "THEIRS"})
    access = made(endpoint_for_inline(server(tls=policy), None, secret(), defaults))
    assert (access.verify, access.ca_pem, access.fingerprint) == (verify, ca, fingerprint)


@pytest.mark.parametrize(
    ("policy", "verify", "reason"),
    [
        (None, False, "TLSNotVerified"),
        ({"trustOnFirstUse": True}, True, "TrustOnFirstUseNotPossible"),
        ({"caSecretRef": {"name": "gone"}}, True, "CANotFound"),
    ],
)
def test_a_certificate_that_nothing_can_verify_ends_the_access(policy: Any, verify: bool, reason: str) -> None:
    """A Server has no place for a pin, so that the first certificate is never accepted; nothing is sent."""
    defaults = BMCEndpointDefaults(verify=verify)
    assert refused(endpoint_for_inline(server(tls=policy), None, secret(), defaults)).reason == reason


@pytest.mark.parametrize("names", [("srv",), ("server/other",), ("b", "server/SRV")])
def test_an_inline_bmc_uses_only_a_secret_that_allows_its_server(names: tuple[str, ...]) -> None:
    """The name of a BMC object with the Server's name is another user."""
    one = BMCSecret(metadata=secret().metadata, data=secret().data, allowed_bmcs=names)
    assert refused(endpoint_for_inline(server(), None, one, INSIDE)).reason == "SecretNotAllowed"
    two = BMCSecret(metadata=secret().metadata, data=secret().data, allowed_bmcs=(*names, "server/srv"))
    assert made(endpoint_for_inline(server(), None, two, INSIDE)).key == "server/srv"
