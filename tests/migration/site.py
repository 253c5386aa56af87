"""A site as the Go operator leaves it: CRDs like its own, 20 Servers in all its states, and machines that fit them."""

import base64
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import msgspec
import yaml

from metal.api.core import CONFIG_MAP, CRD, NAMESPACE, SECRET
from metal.api.kinds import kinds
from metal.api.meta import Kind
from metal.kube.client.protocol import Client
from metal.sim.machine.machine import Machine
from metal.sim.machine.state import OS, Disk

KINDS = kinds()
TEMPLATES = Path(__file__).with_name("left-by-go.yaml")
SYSTEM = "/redfish/v1/Systems/1"
Doc = dict[str, Any]


@dataclass(frozen=True)
class Left:
    """One Server as it was left: its state, its machine's power, how its BMC is reached, and what it is to boot."""

    state: str
    power: str = "Off"
    bmc: str = "endpoint"
    claim: str = ""
    """The claim's power; no claim when empty."""
    phase: str = "Bound"
    sbc: str = "Ready"
    boots: str = "ipxe"
    maintained: bool = False

    @property
    def runs_tenant(self) -> bool:
        """Whether the machine runs what its claim asked for."""
        return bool(self.claim) and self.power == "On" and self.phase == "Bound"


LEFT = (
    Left("Initial"),
    Left("Initial", power="On", bmc="access"),
    Left("Discovery", sbc="Pending"),
    Left("Discovery", power="On", bmc="inline"),
    Left("Discovery", power="On", bmc="access"),
    Left("Available"),
    Left("Available", bmc="access"),
    Left("Available", bmc="inline"),
    Left("Available", power="On"),
    Left("Reserved", power="On", claim="On"),
    Left("Reserved", power="On", claim="On", bmc="access", boots="httpboot"),
    Left("Reserved", power="On", claim="On", bmc="inline"),
    Left("Reserved", claim="Off"),
    Left("Reserved", claim="Off", bmc="inline", boots="httpboot"),
    Left("Reserved", claim="On", sbc="Pending", boots=""),
    Left("Reserved", claim="On", bmc="access"),
    Left("Maintenance", power="On", maintained=True),
    Left("Maintenance", claim="On", bmc="access", maintained=True),
    Left("Error", power="On", claim="On"),
    Left("Error", power="On", bmc="inline"),
)
"""The twenty."""


def raw(kind: Kind[Any]) -> Kind[Any]:
    """The kind, decoded as it is on the wire."""
    return Kind(kind.group, kind.version, kind.kind, kind.plural, msgspec.Raw, namespaced=kind.namespaced)


def _foreign(group: str, name: str, plural: str, *, namespaced: bool) -> Kind[Any]:
    return Kind(group, "v1alpha1", name, plural, msgspec.Raw, namespaced=namespaced)


FOREIGN = (
    _foreign(KINDS.group, "BIOSVersion", "biosversions", namespaced=False),
    _foreign(KINDS.boot_group, "HTTPBootConfig", "httpbootconfigs", namespaced=True),
)
"""Kinds of theirs that nobody here reconciles."""
ALL: Mapping[str, Kind[Any]] = {
    kind.kind: raw(kind) for kind in (*KINDS.all(), *FOREIGN, SECRET, CONFIG_MAP, NAMESPACE)
}


def go_crds() -> list[Doc]:
    """CRDs as loose as they can be: theirs accept and keep whatever theirs accept and keep."""
    return [_loose(kind) for kind in (*KINDS.all(), *FOREIGN)]


def _loose(kind: Kind[Any]) -> Doc:
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": scope, "versions": [version]},
    }


async def install(client: Client, crds: list[Doc]) -> None:
    """As `kubectl apply --server-side --force-conflicts` does."""
    for crd in crds:
        await client.apply(CRD, crd, manager="kubectl")


async def leave(client: Client, machines: list[Machine], password: str, left: tuple[Left, ...] = LEFT) -> None:
    """Write what the Go operator leaves for these machines, and put the machines into the same condition."""
    for name in ("tenants", "metal-system"):
        await client.apply(NAMESPACE, {"metadata": {"name": name}}, manager="kubectl")
    for number, (entry, machine) in enumerate(zip(left, machines, strict=True)):
        settle(machine, entry)
        await _write(client, list(_documents(number, entry, machine, password)))


def settle(machine: Machine, entry: Left) -> None:
    """The machine as it was left."""
    machine.state.power = entry.power
    if entry.claim and entry.phase == "Bound" and entry.sbc == "Ready":
        machine.state.disk = Disk(image="tenant", marker="the tenant's data")
    if entry.power == "On":
        machine.state.os = OS(kind="disk", image="left")


def server_name(number: int, entry: Left) -> str:
    """Names are the Go operator's, <bmc>-system-<n>; people name Servers with inline BMCs as they like."""
    return f"host-{number}" if entry.bmc == "inline" else f"node-{number}-system-0"


def _documents(number: int, entry: Left, machine: Machine, password: str) -> Iterator[Doc]:
    words = _words(number, entry, machine, password)
    yield from _shape(entry.bmc, words)
    (server,) = _shape("server", words)
    server["spec"].update(_spec(number, entry, words))
    if entry.bmc != "inline":
        owner = {"apiVersion": server["apiVersion"], "kind": "BMC", "name": words["name"], "controller": True}
        server["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
    yield server
    if entry.maintained:
        yield from _shape("maintenance", words)
    if entry.state == "Discovery":
        yield from _shape("discovery", words)
    if entry.claim:
        yield from _shape("claim", words)
        if entry.phase == "Bound":
            yield from _shape("config", words)
        if entry.phase == "Bound" and entry.boots:
            yield from _shape(entry.boots, words)


def _spec(number: int, entry: Left, words: Mapping[str, str]) -> Doc:
    spec: Doc = {"bmcRef": {"name": words["name"]}}
    if entry.bmc == "inline":
        protocol = {"name": "Redfish", "port": 8000, "scheme": "http"}
        secret = {"name": f"{words['name']}-login"}
        spec = {"bmc": {"protocol": protocol, "address": words["bmc_ip"], "bmcSecretRef": secret}}
    if entry.claim:
        ref = {"namespace": "tenants", "name": words["claim"]}
        spec |= {"serverClaimRef": ref, "bootConfigurationRef": ref}
    if entry.state == "Discovery":
        spec["bootConfigurationRef"] = {"namespace": "metal-system", "name": words["server"]}
    if entry.maintained:
        ref = {"namespace": "metal-system", "name": f"{words['name']}-bios"}
        spec |= {"serverMaintenanceRef": ref, "power": entry.power}
    return spec


def _words(number: int, entry: Left, machine: Machine, password: str) -> dict[str, str]:
    who, username = machine.identity, machine.site.options.username
    return {
        "name": f"node-{number}", "server": server_name(number, entry), "claim": f"claim-{number}",
        "uuid": who.uuid, "uri": SYSTEM, "serial": who.serial, "bmc_uuid": who.bmc_uuid, "bmc_mac": who.bmc_mac,
        "bmc_ip": who.bmc_ip, "host_mac": who.host_macs[0], "host_ip": who.host_ip,
        "username": _base64(username), "password": _base64(password), "username_text": username,
        "password_text": password, "power": entry.power, "state": entry.state, "wanted": entry.claim,
        "image": "images.sim/demo:latest", "phase": entry.phase, "sbc": entry.sbc,
    }  # fmt: skip


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@cache
def _templates() -> dict[str, list[Doc]]:
    loaded: dict[str, list[Doc]] = yaml.safe_load(TEMPLATES.read_text())
    return loaded


def _shape(name: str, words: Mapping[str, str]) -> list[Doc]:
    filled: list[Doc] = _fill(_templates()[name], words)
    return filled


def _fill(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(words)
    if isinstance(value, list):
        return [_fill(item, words) for item in value]
    if isinstance(value, dict):
        return {key: _fill(item, words) for key, item in value.items()}
    return value


async def _write(client: Client, documents: list[Doc]) -> None:
    uids: dict[tuple[str, str], str] = {}
    for document in documents:
        meta, status = document["metadata"], document.pop("status", None)
        for owner in meta.get("ownerReferences", []):
            if (found := uids.get((owner["kind"], owner["name"]))) is None:
                found = (await read(client, owner["kind"], owner["name"]))["metadata"]["uid"]
            owner["uid"] = found
        kind = ALL[document["kind"]]
        made = msgspec.json.decode(await client.create(kind, document))
        uids[document["kind"], meta["name"]] = made["metadata"]["uid"]
        if status is not None:
            await client.patch_status(kind, meta["name"], {"status": status}, meta.get("namespace", ""))


async def read(client: Client, kind: str, name: str, namespace: str = "") -> Doc:
    """One object as it is on the wire."""
    found: Doc = msgspec.json.decode(await client.get(ALL[kind], name, namespace))
    return found


async def everything(client: Client) -> AsyncIterator[Doc]:
    """All objects of all kinds of theirs, and all Secrets."""
    for kind in ALL.values():
        for item in (await client.list(kind)).items:
            yield {**msgspec.json.decode(item), "kind": kind.kind}
