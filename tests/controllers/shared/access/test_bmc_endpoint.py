"""Resolving a BMC endpoint from API objects."""

from typing import Any

import msgspec
import pytest

from metal.api.bmc import BMC, BMCSecret, TLSPolicy
from metal.api.endpoint import Endpoint
from metal.api.server import Server
from metal.bmc.pool import BMCEndpoint
from metal.controllers.shared.access.bmc_endpoint import BMCEndpointDefaults, endpoint_for_bmc, endpoint_for_inline
from metal.controllers.shared.access.problem import Problem

PROTOCOL = {"name": "Redfish", "port": 8443}
DEFAULTS = BMCEndpointDefaults(ca_pem="OURS")


def bmc(**spec: Any) -> BMC:
    whole = {"access": {"ip": "192.0.2.1"}, "bmcSecretRef": {"name": "s"}, "protocol": PROTOCOL, **spec}
    return msgspec.convert({"metadata": {"name": "b"}, "spec": whole}, BMC)


def secret(**more: Any) -> BMCSecret:
    data = more.pop("data", {"username": b"root", "password": b"pw-1"})
    return BMCSecret(metadata=bmc().metadata, data=data, allowed_bmcs=("*",), **more)


def server(**inline: Any) -> Server:
    whole = {"protocol": PROTOCOL, "address": "192.0.2.3", "bmcSecretRef": {"name": "s"}, **inline}
    return msgspec.convert({"metadata": {"name": "srv"}, "spec": {"uuid": "u", "bmc": whole}}, Server)


ENDPOINT = msgspec.convert({"metadata": {"name": "e"}, "spec": {"ip": "192.0.2.2"}}, Endpoint)


def made(found: BMCEndpoint | Problem) -> BMCEndpoint:
    assert isinstance(found, BMCEndpoint), found
    return found


def refused(found: BMCEndpoint | Problem) -> Problem:
    assert isinstance(found, Problem), found
    return found


def test_an_inline_access_is_verified_https_by_default() -> None:
    """Nothing else is configured."""
    access = made(endpoint_for_bmc(bmc(), None, secret(), DEFAULTS))
    assert access == BMCEndpoint("b", "192.0.2.1", 8443, "https", "root", "pw-1", verify=True, ca_pem="OURS")


def test_an_endpoint_gives_the_address() -> None:
    """With endpointRef the address is that of the Endpoint, also after a change."""
    reference = {"access": None, "endpointRef": {"name": "e"}}
    assert made(endpoint_for_bmc(bmc(**reference), ENDPOINT, secret(), DEFAULTS)).address == "192.0.2.2"


def test_an_inline_bmc_has_a_key_that_no_bmc_object_can_have() -> None:
    """A Server and a BMC of the same name never share a session."""
    access = made(endpoint_for_inline(server(), None, secret(), DEFAULTS))
    assert (access.key, access.address) == ("server/srv", "192.0.2.3")
    other = made(endpoint_for_inline(server(address="", endpointRef={"name": "e"}), ENDPOINT, secret(), DEFAULTS))
    assert other.address == "192.0.2.2"


@pytest.mark.parametrize(
    ("scheme", "default", "expected"),
    [("", "https", "https"), ("", "http", "http"), ("http", "https", "http"), ("https", "http", "https")],
)
def test_plain_http_must_be_asked_for(scheme: str, default: str, expected: str) -> None:
    """The scheme of the BMC overrides that of the manager."""
    spec = bmc(protocol={**PROTOCOL, "scheme": scheme})
    assert made(endpoint_for_bmc(spec, None, secret(), BMCEndpointDefaults(scheme=default))).scheme == expected


by_tls_policy = pytest.mark.parametrize(
    ("policy", "verify", "ca", "fingerprint"),
    [
        ({}, True, "OURS", ""),
        ({"insecureSkipVerify": True}, False, "", ""),
        ({"fingerprint": "AB:" * 31 + "CD"}, True, "", "ab" * 31 + "cd"),
        ({"caSecretRef": {"name": "ca"}}, True, "THEIRS", ""),
    ],
    ids=["empty", "insecure", "pinned", "own CA"],
)


@by_tls_policy
def test_the_tls_policy_of_the_bmc_counts(policy: dict[str, Any], verify: bool, ca: str, fingerprint: str) -> None:
    """A policy replaces the manager's defaults, even weaker ones: an empty policy means verified."""
    defaults = BMCEndpointDefaults(verify=False, ca_pem="OURS", authorities={"ca": "THEIRS"})
    access = made(endpoint_for_bmc(bmc(tls=policy), None, secret(), defaults))
    assert (access.verify, access.ca_pem, access.fingerprint) == (verify, ca, fingerprint)


@pytest.mark.parametrize(
    ("change", "endpoint", "reason", "words"),
    [
        ({"access": {"ip": None}}, None, "AddressMissing", "spec.access.ip"),
        ({"access": None, "endpointRef": {"name": "e"}}, None, "EndpointNotFound", "Endpoint e does not exist"),
        ({"access": None, "endpointRef": {"name": "e"}}, Endpoint(), "AddressMissing", "spec.ip of Endpoint e"),
        ({"protocol": {"name": "IPMI", "port": 623}}, None, "ProtocolNotSupported", "'IPMI'"),
        ({"bmcSecretRef": {}}, None, "SecretNotSet", "bmcSecretRef.name"),
        ({"tls": {"caSecretRef": {"name": "gone"}}}, None, "CANotFound", "Secret gone"),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], endpoint: Endpoint | None, reason: str, words: str) -> None:
    """Each problem has its own reason, and a message with the object or the field."""
    problem = refused(endpoint_for_bmc(bmc(**change), endpoint, secret(), DEFAULTS))
    assert problem.reason == reason
    assert words in problem.message


@pytest.mark.parametrize(
    ("data", "reason", "words"),
    [
        ({}, "CredentialsMissing", "has no username"),
        ({"username": b"root"}, "CredentialsMissing", "has no password"),
        ({"username": b"root", "password": b""}, "CredentialsMissing", "has no password"),
        ({"username": b"root\n", "password": b"x"}, "CredentialsInvalid", "line break"),
        ({"username": b"root", "password": b"\xff"}, "CredentialsInvalid", "not UTF-8"),
    ],
)
def test_incomplete_credentials_are_named_but_not_shown(data: dict[str, bytes], reason: str, words: str) -> None:
    """A line break at the end would cost a login attempt; the message says how to write it without."""
    problem = refused(endpoint_for_bmc(bmc(), None, secret(data=data), DEFAULTS))
    assert problem.reason == reason
    assert words in problem.message
    assert "root" not in problem.message


def test_a_missing_secret_is_named() -> None:
    """The message says what it must contain."""
    problem = refused(endpoint_for_bmc(bmc(), None, None, DEFAULTS))
    assert problem.reason == "SecretNotFound"
    assert "username and password" in problem.message


@pytest.mark.behaviour("BMCSecret", "`stringData` takes precedence over `data`.", go="Reads `data` first.")
def test_string_data_counts_before_data() -> None:
    """stringData over existing data is the new value, as in a core Secret."""
    access = made(endpoint_for_bmc(bmc(), None, secret(string_data={"password": "new"}), DEFAULTS))
    assert (access.username, access.password) == ("root", "new")


def test_a_server_without_any_bmc_is_told_what_to_set() -> None:
    """Neither bmcRef nor bmc is set."""
    lonely = msgspec.convert({"metadata": {"name": "srv"}, "spec": {"uuid": "u"}}, Server)
    assert refused(endpoint_for_inline(lonely, None, None, DEFAULTS)).reason == "BMCNotSet"


def test_nothing_secret_shows_in_reprs() -> None:
    """Endpoint, defaults and credentials hide user names, passwords and certificates."""
    defaults = BMCEndpointDefaults(ca_pem="PEM-TEXT", authorities={"a": "PEM-TEXT"})
    access = made(endpoint_for_bmc(bmc(tls=None), None, secret(), defaults))
    shown = repr(access) + repr(defaults) + repr(secret()) + repr(TLSPolicy())
    assert "pw-1" not in shown
    assert "root" not in shown
    assert "PEM-TEXT" not in shown
