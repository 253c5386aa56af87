"""The manifests that the seed promises, and the samples of the project."""

from pathlib import Path
from typing import Any

import pytest

from metal.controllers.endpoint import mac_prefixes
from tests.api.schemas import SAMPLES, documents, problems

MANIFESTS = sorted(path for path in SAMPLES.rglob("*.yaml") if path.name != "mac-prefixes.yaml")


def identify(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("path", MANIFESTS, ids=identify)
def test_every_sample_validates_against_the_generated_schema(path: Path) -> None:
    """Every sample is valid, and no field is pruned."""
    ours = [document for document in documents(path) if document["apiVersion"] != "v1"]
    assert ours
    for document in ours:
        group = document["apiVersion"].split("/")[0]
        metal = "metal.ironcore.dev" if group.startswith("boot.") else group
        assert problems(document, metal) == []


def test_the_promised_manifests_are_all_there() -> None:
    """The ten promised manifests exist and cover all kinds that users write."""
    seeds = [document for path in sorted((SAMPLES / "seed").glob("*.yaml")) for document in documents(path)]
    kinds = sorted(document["kind"] for document in seeds)
    assert kinds == [
        "BMC", "BMC", "BMC", "Endpoint", "Server", "Server", "Server", "ServerBootConfiguration", "ServerClaim",
        "ServerClaim",
    ]  # fmt: skip


def test_a_wrong_field_is_found() -> None:
    """The validator finds a misspelled field, an invalid enum and an invalid address."""
    server: dict[str, Any] = documents(SAMPLES / "server-inline-bmc.yaml")[0]
    server["spec"]["indicatorLED"] = "Sparkling"
    server["spec"]["systemUuid"] = "x"
    endpoint: dict[str, Any] = documents(SAMPLES / "endpoint.yaml")[0]
    endpoint["spec"]["ip"] = "192.0.2.300"
    assert len(problems(server)) == 2
    assert len(problems(endpoint)) == 1


def test_the_sample_of_the_mac_prefix_file_is_read() -> None:
    """The manager accepts the sample of the MAC prefix file."""
    prefixes = mac_prefixes.parse((SAMPLES / "mac-prefixes.yaml").read_text())
    found = prefixes.lookup("A0-B1-C2-FF-00-01")
    assert found is not None
    assert not found.insecure_skip_verify
