"""Objects as the Go types of v0.7 marshal them, on both APIs: zero values are admitted, dropped fields are refused."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metal.api.meta import Kind
from metal.kube.client.errors import Invalid
from tests.conformance.conftest import KUBE
from tests.conformance.homes import KINDS, Home, home

PROTOCOL = {"name": "Redfish", "port": 443}
ZERO = {"name": "", "port": 0}
SECRET = {"name": ""}


@pytest.fixture(params=["tls", KUBE])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Home]:
    """Both homes."""
    cluster = request.getfixturevalue("cluster") if request.param == "kube" else None
    async with home(request.param, tmp_path, cluster) as made:
        yield made


def zero_values() -> list[tuple[Kind[Any], dict[str, Any]]]:
    """Kind and spec with the fields that Go writes also when nothing was set (no omitempty)."""
    inline = {"protocol": ZERO, "address": "192.0.2.1", "bmcSecretRef": SECRET}
    bad_mac = {"macAddress": "not-a-mac", "ip": "192.0.2.1"}
    return [
        (KINDS.bmc, {"access": bad_mac, "bmcSecretRef": SECRET, "protocol": ZERO}),
        (KINDS.bmc, {"endpointRef": {"name": "e"}, "bmcSecretRef": SECRET, "protocol": ZERO}),
        (KINDS.server, {"systemUUID": ""}),
        (KINDS.server, {"systemUUID": "", "bmc": inline, "bmcRef": {"name": ""}}),
    ]


async def test_zero_values_of_go_are_admitted_and_may_be_written_again(api: Home) -> None:
    """Also by a later update of another field, and by our own status writes."""
    for kind, spec in zero_values():
        name = f"go-{secrets.token_hex(4)}"
        await api.client.create(kind, {"metadata": {"name": name}, "spec": spec})
        await api.client.patch(kind, name, {"metadata": {"labels": {"a": "b"}}, "spec": spec})
        await api.client.patch_status(kind, name, {"status": {"waitingFor": "a valid value"}})
        await api.client.delete(kind, name)


@pytest.mark.parametrize(
    ("name", "spec", "field", "value", "empty"),
    [
        ("bmcs", {"endpointRef": {"name": "e"}, "bmcSecretRef": {"name": "s"}, "protocol": PROTOCOL}, "tls",
         {"fingerprint": "ab" * 32}, {"fingerprint": None}),
        ("serverclaims", {"power": "On", "image": "os:1"}, "sanitizationPolicy", "Purge", ""),
        ("serverclaims", {"power": "On", "image": "os:1"}, "bootGeneration", 3, 0),
    ],
)  # fmt: skip
async def test_a_field_that_a_typed_update_drops_is_refused_with_the_way_out(
    api: Home, name: str, spec: dict[str, Any], field: str, value: Any, empty: Any
) -> None:
    """The explicit empty value is admitted, and after it the absence, as of a manifest without the field."""
    kind: Kind[Any] = next(kind for kind in KINDS.all() if kind.plural == name)
    place, one = "default" if kind.namespaced else "", f"go-{secrets.token_hex(4)}"
    await api.client.create(kind, {"metadata": {"name": one, "namespace": place}, "spec": {**spec, field: value}})
    with pytest.raises(Invalid, match=f"{field} cannot be removed"):
        await api.client.patch(kind, one, {"spec": {field: None}}, place)
    await api.client.patch(kind, one, {"spec": {field: empty}}, place)
    await api.client.patch(kind, one, {"spec": {field: None}}, place)
    await api.client.delete(kind, one, place)
