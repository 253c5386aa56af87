"""Rules between fields, as the embedded API enforces them."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from metal.api.kinds import kinds
from metal.apiserver.server import EmbeddedAPI
from metal.codegen.crd import crds
from metal.kube.client.errors import Invalid
from metal.kube.client.protocol import Client

KINDS = kinds()
PROTOCOL = {"name": "Redfish", "port": 443}
BMC = {"bmcSecretRef": {"name": "s"}, "protocol": PROTOCOL}
ENDPOINT = {"endpointRef": {"name": "e"}}
ACCESS = {"access": {"ip": "192.0.2.1", "macAddress": "00:1A:2B:3C:4D:5E"}}
EXACTLY_ONE = "exactly one of access or endpointRef needs to be set"
UUID = "123e4567-e89b-12d3-a456-426614174000"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[EmbeddedAPI]:
    """One API for all tests of the module: its CRDs take longer than any test."""
    api = EmbeddedAPI(None, lambda: datetime(2026, 1, 1, tzinfo=UTC), rng=random.Random(0))
    await api.start()
    await api.install_crds(crds(KINDS))
    yield api
    await api.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def client(api: EmbeddedAPI) -> AsyncIterator[Client]:
    client = api.client()
    yield client
    for kind in KINDS.all():
        for obj in (await client.list(kind)).items:
            await client.delete(kind, obj.metadata.name, obj.metadata.namespace)


async def bmc(client: Client, **spec: Any) -> None:
    await client.create(KINDS.bmc, {"metadata": {"name": "b"}, "spec": {**BMC, **spec}})


async def change_bmc(client: Client, **spec: Any) -> None:
    await client.patch(KINDS.bmc, "b", {"spec": spec})


@pytest.mark.behaviour("BMC", "Exactly one of `spec.endpointRef` and `spec.access` must be set.")
@pytest.mark.parametrize("spec", [{}, {**ENDPOINT, **ACCESS}], ids=["neither", "both"])
async def test_a_bmc_needs_exactly_one_way_to_its_address(client: Client, spec: dict[str, Any]) -> None:
    """Both forms, or neither, are refused with the Go operator's own words."""
    with pytest.raises(Invalid, match=EXACTLY_ONE):
        await bmc(client, **spec)


@pytest.mark.behaviour("BMC", "A BMC may switch between `spec.endpointRef` and `spec.access` in one update.")
@pytest.mark.parametrize(
    ("first", "change"),
    [
        (ENDPOINT, {"endpointRef": None, **ACCESS}),
        (ACCESS, {"access": None, **ENDPOINT}),
        (ENDPOINT, {"hostname": "bmc-1"}),
        (ACCESS, {"hostname": "bmc-1"}),
    ],
    ids=["endpointRef to access", "access to endpointRef", "endpointRef stays", "access stays"],
)
async def test_a_bmc_may_switch_its_form_in_one_update(
    client: Client, first: dict[str, Any], change: dict[str, Any]
) -> None:
    """Switching between endpointRef and access at once is admitted, and so is any other change."""
    await bmc(client, **first)
    await change_bmc(client, **change)


@pytest.mark.behaviour("BMC", "The address of a BMC can neither be changed nor removed.")
@pytest.mark.parametrize(
    ("first", "change", "message"),
    [
        (ENDPOINT, {"endpointRef": None}, EXACTLY_ONE),
        (ACCESS, {"access": None}, EXACTLY_ONE),
        (ENDPOINT, {"endpointRef": {"name": "other"}}, "endpointRef is immutable"),
        (ACCESS, {"access": {"ip": "192.0.2.2"}}, "access is immutable"),
    ],
)
async def test_a_bmc_keeps_its_address(
    client: Client, first: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    """Once set, the way to the BMC neither changes nor vanishes."""
    await bmc(client, **first)
    with pytest.raises(Invalid, match=message):
        await change_bmc(client, **change)


async def test_a_tls_policy_that_trusts_everybody_pins_nobody(client: Client) -> None:
    """insecureSkipVerify beside a fingerprint is a contradiction, refused with the way out."""
    await bmc(client, **ENDPOINT, tls={"fingerprint": "ab" * 32})
    with pytest.raises(Invalid, match="accepts any certificate"):
        await change_bmc(client, tls={"insecureSkipVerify": True})


@pytest.mark.parametrize(
    "other", [{"fingerprint": "ab" * 32}, {"caSecretRef": {"name": "ca"}}, {"insecureSkipVerify": True}]
)
async def test_trust_on_first_use_stands_alone(client: Client, other: dict[str, Any]) -> None:
    """Beside another word about the certificate it would be unclear which counts; false beside it is fine."""
    await bmc(client, **ENDPOINT, tls={"trustOnFirstUse": False, **other})
    with pytest.raises(Invalid, match="pins the first certificate"):
        await change_bmc(client, tls={"trustOnFirstUse": True})


@pytest.mark.behaviour("BMCSecret", "With `immutable: true` neither values nor the field itself can be changed.")
@pytest.mark.parametrize(
    "change",
    [
        {"data": {"password": "eA=="}},
        {"data": None},
        {"stringData": {"password": "x"}},
        {"immutable": False},
        {"immutable": None},
    ],
    ids=["changed", "removed", "stringData", "unlocked", "unset"],
)
async def test_an_immutable_secret_stays_as_it_is(client: Client, change: dict[str, Any]) -> None:
    """immutable: true forbids every change of the values, and of itself."""
    values = {"username": "Zm9v", "password": "YmFy"}
    await client.create(KINDS.bmc_secret, {"metadata": {"name": "s"}, "immutable": True, "data": values})
    with pytest.raises(Invalid, match="immutable"):
        await client.patch(KINDS.bmc_secret, "s", change)
    await client.patch(KINDS.bmc_secret, "s", {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.behaviour("BMCSecret", "Without `immutable` everything may change, until it is set.")
async def test_a_mutable_secret_changes_and_can_be_locked(client: Client) -> None:
    """Without immutable everything may change, until it is set."""
    await client.create(KINDS.bmc_secret, {"metadata": {"name": "s"}, "stringData": {"username": "a"}})
    await client.patch(KINDS.bmc_secret, "s", {"data": {"username": "Yg=="}, "stringData": None})
    await client.patch(KINDS.bmc_secret, "s", {"immutable": True})
    with pytest.raises(Invalid):
        await client.patch(KINDS.bmc_secret, "s", {"data": {"username": "Yw=="}})


async def server(client: Client, **spec: Any) -> None:
    await client.create(KINDS.server, {"metadata": {"name": "srv"}, "spec": spec})


async def test_a_server_is_named_by_either_spelling_of_its_uuid(client: Client) -> None:
    """systemUUID or uuid is needed; both together must say the same, in whatever case.

    An empty systemUUID, as programs in Go send it, is admitted; the controller reports it.
    """
    with pytest.raises(Invalid, match="systemUUID is required"):
        await server(client)
    await server(client, systemUUID="")
    await client.delete(KINDS.server, "srv")
    with pytest.raises(Invalid, match="must be equal"):
        await server(client, systemUUID=UUID, uuid=UUID.replace("1", "2"))
    await server(client, systemUUID=UUID, uuid=UUID.upper())


@pytest.mark.behaviour("Cleanup", "An unknown reclaim policy is refused at admission.", go="Fails at the release.")
async def test_a_reclaim_policy_is_one_that_is_known(client: Client) -> None:
    """What nobody knows how to follow is refused when it is written, and never met at the release."""
    with pytest.raises(Invalid, match="reclaimPolicy"):
        await server(client, uuid=UUID, reclaimPolicy="Burn")
    await server(client, uuid=UUID, reclaimPolicy="Retain")


async def test_an_inline_bmc_is_at_one_place(client: Client) -> None:
    """An address or an Endpoint, not both and not neither."""
    inline = {"protocol": PROTOCOL, "bmcSecretRef": {"name": "s"}}
    for where in ({}, {"address": ""}, {"address": "192.0.2.1", "endpointRef": {"name": "e"}}):
        with pytest.raises(Invalid, match="exactly one of address and endpointRef must be set"):
            await server(client, uuid=UUID, bmc={**inline, **where})
    await server(client, uuid=UUID, bmc={**inline, "endpointRef": {"name": "e"}})


@pytest.mark.behaviour(
    "ServerClaim", "`spec.serverClaimRef` of a Server cannot change its target; it can be removed and set again."
)
@pytest.mark.parametrize("change", [{"name": "other"}, {"namespace": "other"}])
async def test_a_claim_reference_does_not_change_its_target(client: Client, change: dict[str, str]) -> None:
    """A server goes from one claim to another only through no claim at all."""
    await server(client, uuid=UUID, serverClaimRef={"namespace": "default", "name": "c"})
    with pytest.raises(Invalid, match="serverClaimRef is immutable"):
        await client.patch(KINDS.server, "srv", {"spec": {"serverClaimRef": change}})
    await client.patch(KINDS.server, "srv", {"spec": {"serverClaimRef": None}})
    reference = {"namespace": "default", "name": "c", **change}
    await client.patch(KINDS.server, "srv", {"spec": {"serverClaimRef": reference}})


@pytest.mark.behaviour(
    "ServerClaim", "`serverRef` and `serverSelector` may be added once; then they can neither change nor be removed."
)
@pytest.mark.parametrize(
    ("field", "value", "other"),
    [
        ("serverRef", {"name": "a"}, {"name": "b"}),
        ("serverSelector", {"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "c"}}),
    ],
)
async def test_what_a_claim_asks_for_stays(client: Client, field: str, value: Any, other: Any) -> None:
    """serverRef and serverSelector may be added once; then they neither change nor go."""
    spec = {"power": "On", "image": "os:1"}
    await client.create(KINDS.claim, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec})
    await client.patch(KINDS.claim, "c", {"spec": {field: value}}, "default")
    await client.patch(KINDS.claim, "c", {"spec": {field: value, "power": "Off"}}, "default")
    with pytest.raises(Invalid, match=f"{field} is immutable"):
        await client.patch(KINDS.claim, "c", {"spec": {field: other}}, "default")
    with pytest.raises(Invalid, match=f"{field} is required once set"):
        await client.patch(KINDS.claim, "c", {"spec": {field: None}}, "default")


@pytest.mark.behaviour("ServerClaim", "Taints are distinguished by key and effect; an empty effect is NoBind.")
async def test_taints_are_told_apart_by_key_and_effect(client: Client) -> None:
    """The same key and effect twice are refused, as on a Node; effects default to NoBind before they are compared."""
    await server(client, uuid=UUID, taints=[{"key": "a"}, {"key": "a", "effect": "Evict"}, {"key": "b"}])
    read = await client.get(KINDS.server, "srv")
    assert [taint.effect for taint in read.spec.taints] == ["NoBind", "Evict", "NoBind"]
    with pytest.raises(Invalid):
        await client.patch(KINDS.server, "srv", {"spec": {"taints": [{"key": "c"}, {"key": "c", "effect": "NoBind"}]}})


DROPPED = [
    (KINDS.bmc, {**BMC, **ENDPOINT}, "tls", {"fingerprint": "ab" * 32}, {"fingerprint": None}),
    (KINDS.bmc, {**BMC, **ENDPOINT}, "tls", {"insecureSkipVerify": True}, {"insecureSkipVerify": None}),
    (KINDS.claim, {"power": "On", "image": "os:1"}, "sanitizationPolicy", "Purge", ""),
    (KINDS.claim, {"power": "On", "image": "os:1"}, "bootGeneration", 3, 0),
]


@pytest.mark.behaviour(
    "ServerClaim",
    "An update that drops `sanitizationPolicy` or `bootGeneration` of a claim, or `tls` of a BMC, is refused; an "
    "explicit empty value is not.",
)
@pytest.mark.parametrize(
    ("kind", "spec", "field", "value", "empty"), DROPPED, ids=lambda value: value if isinstance(value, str) else None
)
async def test_what_protects_data_is_not_dropped_without_a_word(
    client: Client, kind: Any, spec: dict[str, Any], field: str, value: Any, empty: Any
) -> None:
    """A typed client of an older API drops fields that its structs lack; the message names field and way out."""
    place = "default" if kind is KINDS.claim else ""
    await client.create(kind, {"metadata": {"name": "d", "namespace": place}, "spec": {**spec, field: value}})
    with pytest.raises(Invalid, match=f"{field} cannot be removed.*: set (it|tls) to"):
        await client.patch(kind, "d", {"spec": {field: None}}, place)
    await client.patch(kind, "d", {"metadata": {"labels": {"a": "b"}}}, place)
    await client.patch(kind, "d", {"spec": {field: empty}}, place)
    await client.patch(kind, "d", {"spec": {field: None}}, place)


async def test_the_tls_policy_of_an_inline_bmc_is_not_dropped_without_a_word(client: Client) -> None:
    """Unless the whole of spec.bmc is removed."""
    inline = {"protocol": PROTOCOL, "bmcSecretRef": {"name": "s"}, "address": "192.0.2.1"}
    await server(client, uuid=UUID, bmc={**inline, "tls": {"fingerprint": "ab" * 32}})
    with pytest.raises(Invalid, match="tls cannot be removed"):
        await client.patch(KINDS.server, "srv", {"spec": {"bmc": {"tls": None}}})
    await client.patch(KINDS.server, "srv", {"spec": {"bmc": None, "bmcRef": {"name": "b"}}})
