"""The DNS record of a BMC: applied once, kept in sync, moved with its name, and reported when it cannot be written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
import pytest

from metal.api.core import CONFIG_MAP
from metal.api.meta import Condition, Kind, Model, ObjectMeta
from metal.bmc.errors import BMCUnreachable
from metal.controllers.bmc.dns_template import parse
from metal.kube.client.errors import Forbidden, NotFound, Unavailable
from metal.kube.client.protocol import Client
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import Object
from tests.controllers.rack import KINDS, NS, Rack, condition, rack, ready, soon
from tests.controllers.tap import Tap

pytestmark = pytest.mark.looptime
T = TypeVar("T", bound=Object)


class DNSRecord(Model, frozen=True, kw_only=True):
    """The kind of the test."""

    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


RECORD = Kind("dns.example", "v1", "DNSRecord", "dnsrecords", DNSRecord)
RENAMED = Kind("dns.example", "v1", "DNSRecord", "records", DNSRecord)
OTHER = Kind("dns.example", "v1", "Zone", "zones", DNSRecord, namespaced=False)
CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", DNSRecord, namespaced=False
)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", DNSRecord, namespaced=False)
TEMPLATE = """
apiVersion: dns.example/v1
kind: DNSRecord
metadata:
  name: {{ .Name }}
  labels: {{ .Labels }}
spec:
  dnsName: "{{ .Hostname }}"
  targets: ["{{ .IP }}"]
"""


def crd(kind: Kind[Any]) -> dict[str, Any]:
    """A CRD whose spec has names and addresses, in two versions."""
    spec = {"dnsName": {"type": "string", "maxLength": 30}, "targets": {"type": "array", "items": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {"served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [{**version, "name": name, "storage": name == "v1"} for name in ("v1", "v2beta1")],
        },
    }


class Gate(Tap):
    """Refuses these verbs on DNS records."""

    def __init__(self, inner: Client) -> None:
        super().__init__(inner)
        self.forbidden: set[str] = set()
        self.deleted: list[str] = []

    def check(self, verb: str, kind: Kind[Any]) -> None:
        if verb in self.forbidden and kind.group == RECORD.group:
            raise Forbidden(f"the account cannot {verb} {kind.plural}")

    async def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        self.check("get", kind)
        return await super().get(kind, name, namespace)

    async def apply(self, kind: Any, obj: Any, *, manager: str, force: bool = True) -> Any:
        self.check("patch", kind)
        return await super().apply(kind, obj, manager=manager, force=force)

    async def delete(self, kind: Any, name: str, namespace: str = "", **options: Any) -> Any:
        self.check("delete", kind)
        self.deleted.append(options["uid"])
        return await super().delete(kind, name, namespace, **options)


@asynccontextmanager
async def site(template: str = TEMPLATE, *, installed: bool = True) -> AsyncIterator[tuple[Rack, Gate]]:
    """A rack whose manager has a template, and one BMC with a host name."""
    async with rack(started=False) as r:
        if installed:
            await r.api.install_crds([crd(RECORD), crd(OTHER)])
        r.client = gate = Gate(r.client)
        r.template = parse(template, "dns.yaml")
        r.plug(1)
        await r.add_bmc(1, hostname="b1.example.com", labels={"row": "r7"})
        await r.start()
        yield r, gate


async def told(r: Rack, status: str, reason: str, name: str = "b1") -> Condition:
    """The condition, once it has this status and reason."""

    async def check() -> Any:
        found = find((await r.bmc(name)).status.conditions, "DNSRecordApplied")
        return found if found is not None and (found.status, found.reason) == (status, reason) else None

    found: Condition = await soon(check, within=100)
    return found


async def record(r: Rack, name: str = "b1") -> DNSRecord:
    return await r.user.get(RECORD, name, NS)


async def exists(r: Rack, name: str) -> bool:
    try:
        await record(r, name)
    except NotFound:
        return False
    return True


async def gone(r: Rack, kind: Kind[Any], name: str, namespace: str = "") -> None:
    """Wait until the record is gone."""

    async def check() -> bool:
        try:
            await r.user.get(kind, name, namespace)
        except NotFound:
            return True
        return False

    await soon(check, within=100)


@pytest.mark.behaviour(
    "BMC", "With `dnsRecordTemplate` each BMC owns a DNS record object, named in `status.dnsRecord` and a condition."
)
async def test_a_bmc_gets_its_record_in_the_managers_namespace_and_owns_it() -> None:
    """The condition and status.dnsRecord name it; the Server is created as usual."""
    async with site() as (r, _):
        said = await told(r, "True", "RecordApplied")
        made, bmc, servers = await record(r), await r.bmc(), await r.servers()
    assert made.spec == {"dnsName": "b1.example.com", "targets": ["192.0.2.1"]}
    assert made.metadata.labels == {"row": "r7"}
    (owner,) = made.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("BMC", bmc.metadata.uid, True)
    assert said.message == "DNSRecord metal-system/b1 matches the template"
    ref = bmc.status.dns_record
    assert ref is not None
    assert (ref.api_version, ref.kind, ref.namespace, ref.name) == ("dns.example/v1", "DNSRecord", NS, "b1")
    assert list(servers) == ["b1-system-0"]


@pytest.mark.behaviour("BMC", "The DNS record object is deleted with its BMC, by its owner reference.")
async def test_the_record_goes_with_its_bmc() -> None:
    """Through its owner reference; nothing has to be removed by hand."""
    async with site() as (r, _):
        await told(r, "True", "RecordApplied")
        await r.user.delete(KINDS.bmc, "b1")
        await gone(r, RECORD, "b1", NS)


async def test_nothing_is_written_while_nothing_changes() -> None:
    """An hour of passes: one apply, no status of its own; the manager that follows writes once more at most."""
    async with site() as (r, gate):
        await told(r, "True", "RecordApplied")
        await asyncio.sleep(60)
        version, before = (await record(r)).metadata.resource_version, len(gate.writes)
        await asyncio.sleep(3600)
        assert gate.count("apply DNSRecord") == 1
        assert len(gate.writes) == before
        await r.restart()
        await asyncio.sleep(600)
        after = await record(r)
    assert gate.count("apply DNSRecord") == 2
    assert after.metadata.resource_version == version


async def test_a_record_that_was_deleted_or_changed_comes_back() -> None:
    """At the next pass; what its own controller wrote into its status stays."""
    async with site() as (r, gate):
        await told(r, "True", "RecordApplied")
        await r.user.delete(RECORD, "b1", NS)
        await soon(lambda: exists(r, "b1"), within=100)
        await r.user.patch_status(RECORD, "b1", {"status": {"published": True}}, NS)
        await r.user.patch(RECORD, "b1", {"spec": {"targets": ["203.0.113.9"]}}, NS)
        await asyncio.sleep(100)
        again = await record(r)
    assert again.spec["targets"] == ["192.0.2.1"]
    assert again.status == {"published": True}
    assert gate.count("apply DNSRecord") == 3


async def test_a_changed_bmc_changes_its_record() -> None:
    """Host name and labels; a label that is removed goes from the record, too."""
    async with site() as (r, _):
        await told(r, "True", "RecordApplied")
        change = {"metadata": {"labels": {"row": None, "site": "x"}}, "spec": {"hostname": "new.example.com"}}
        await r.user.patch(KINDS.bmc, "b1", change)
        await asyncio.sleep(2)
        made = await record(r)
    assert made.spec["dnsName"] == "new.example.com"
    assert made.metadata.labels == {"site": "x"}


async def test_a_bmc_that_does_not_answer_has_its_record_all_the_same() -> None:
    """The name is needed most when the BMC does not answer."""
    async with rack(started=False) as r:
        await r.api.install_crds([crd(RECORD)])
        r.template = parse(TEMPLATE, "dns.yaml")
        r.plug(1).failure = BMCUnreachable("refused")
        await r.add_bmc(1, hostname="b1.example.com")
        await r.start()
        await told(r, "True", "RecordApplied")
        assert ready(await r.bmc())[0] == "False"


async def test_the_record_of_a_former_name_is_removed_once_the_new_one_is_there() -> None:
    """Only after the new one is written; a record that another owner took over stays."""
    async with site(TEMPLATE.replace("{{ .Name }}", "{{ .Hostname }}")) as (r, gate):
        await told(r, "True", "RecordApplied")
        uid = (await record(r, "b1.example.com")).metadata.uid
        gate.forbidden = {"delete"}
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": "b2.example.com"}})
        said = await told(r, "False", "Forbidden")
        assert (await record(r, "b1.example.com")).metadata.name in said.message
        assert (await record(r, "b2.example.com")).spec["dnsName"] == "b2.example.com"
        gate.forbidden = set()
        await told(r, "True", "RecordApplied")
        await gone(r, RECORD, "b1.example.com", NS)
        assert gate.deleted == [uid], "one that took its place meanwhile must not be deleted"
        body = {"metadata": {"ownerReferences": None}}
        await r.user.patch(RECORD, "b2.example.com", body, NS)
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": "b3.example.com"}})
        await soon(lambda: exists(r, "b3.example.com"), within=100)
        await told(r, "True", "RecordApplied")
        assert await exists(r, "b2.example.com")
        ref = (await r.bmc()).status.dns_record
    assert ref is not None
    assert ref.name == "b3.example.com"


async def test_a_template_of_another_kind_replaces_the_records() -> None:
    """Cluster-scoped ones have no namespace."""
    async with site() as (r, _):
        await told(r, "True", "RecordApplied")
        await r.runtime.stop(grace=0.0)
        r.template = parse(TEMPLATE.replace("kind: DNSRecord", "kind: Zone"), "dns.yaml")
        await r.start(2)
        await gone(r, RECORD, "b1", NS)
        made, bmc = await r.user.get(OTHER, "b1"), await r.bmc()
    assert made.spec["dnsName"] == "b1.example.com"
    assert bmc.status.dns_record is not None
    assert (bmc.status.dns_record.kind, bmc.status.dns_record.namespace) == ("Zone", "")


async def test_another_version_of_the_kind_is_the_same_record() -> None:
    """It is not deleted as the record of a former name."""
    async with site() as (r, gate):
        await told(r, "True", "RecordApplied")
        before = await record(r)
        await r.runtime.stop(grace=0.0)
        r.template = parse(TEMPLATE.replace("/v1", "/v2beta1"), "dns.yaml")
        await r.start(2)
        await asyncio.sleep(100)
        after, bmc = await record(r), await r.bmc()
    assert after.metadata.uid == before.metadata.uid
    assert gate.deleted == []
    assert bmc.status.dns_record is not None
    assert bmc.status.dns_record.api_version == "dns.example/v2beta1"


async def test_without_a_template_records_stay_and_nothing_is_said_of_them() -> None:
    """Losing the option must not delete names."""
    async with site() as (r, _):
        await told(r, "True", "RecordApplied")
        await r.runtime.stop(grace=0.0)
        r.template = None
        await r.start(2)
        await asyncio.sleep(100)
        bmc = await r.bmc()
        assert await exists(r, "b1")
    assert find(bmc.status.conditions, "DNSRecordApplied") is None
    assert bmc.status.dns_record is not None


@pytest.mark.parametrize("verb", ["get", "patch"])
async def test_a_missing_right_is_named_as_a_rule_and_stops_nothing(verb: str) -> None:
    """The Server is there, the BMC Ready; once the right is given the record follows by itself."""
    async with site() as (r, gate):
        gate.forbidden = {verb}
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": "new.example.com"}})
        said = await told(r, "False", "Forbidden")
        bmc, servers, events = await r.bmc(), await r.servers(), await r.events()
        gate.forbidden = set()
        await told(r, "True", "RecordApplied")
    rule = '{apiGroups: ["dns.example"], resources: [dnsrecords], verbs: [get, create, patch, delete]}'
    assert f"a Role in namespace metal-system with the rule {rule}" in said.message
    assert ready(bmc)[0] == "True"
    assert list(servers) == ["b1-system-0"]
    assert events.count(("b1", "Forbidden")) == 1


async def test_a_kind_that_is_not_installed_is_said_and_found_once_it_is() -> None:
    """Also when its CRD goes while the manager runs, and comes back with another plural."""
    async with site(installed=False) as (r, _):
        said = await told(r, "False", "KindNotInstalled")
        assert said.message == (
            "the API has no kind DNSRecord in dns.example/v1: install its CRD, or correct the template"
        )
        assert len(await r.servers()) == 1
        await r.api.install_crds([crd(RECORD)])
        await told(r, "True", "RecordApplied")
        await r.user.delete(CRD, "dnsrecords.dns.example")
        await told(r, "False", "KindNotInstalled")
        await r.api.install_crds([crd(RENAMED)])
        await told(r, "True", "RecordApplied")
        assert (await r.user.get(RENAMED, "b1", NS)).spec["dnsName"] == "b1.example.com"


async def test_a_field_that_the_bmc_does_not_have_is_named() -> None:
    """No incomplete record is written; an existing one stays until the field is set again."""
    async with site() as (r, _):
        await told(r, "True", "RecordApplied")
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": None}})
        said = await told(r, "False", "FieldEmpty")
        assert (await record(r)).spec["dnsName"] == "b1.example.com"
    assert said.message.startswith("no DNS record is written: the BMC has no value for Hostname")


async def test_what_the_api_refuses_is_told_in_its_words() -> None:
    """With the field that is wrong."""
    async with site() as (r, _):
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": "x" * 31}})
        said = await told(r, "False", "Invalid")
    assert "DNSRecord metal-system/b1" in said.message
    assert "spec.dnsName" in said.message


async def test_two_bmcs_do_not_fight_for_one_record() -> None:
    """The first keeps it; the condition of the other names the owner and the correction."""
    async with site(TEMPLATE.replace("{{ .Name }}", "one")) as (r, gate):
        await told(r, "True", "RecordApplied")
        r.plug(2)
        await r.add_bmc(2, hostname="b2.example.com")
        said = await told(r, "False", "OwnedByAnother", "b2")
        await asyncio.sleep(600)
        made = await record(r, "one")
    assert said.message.startswith("DNSRecord metal-system/one is owned by BMC b1: use {{ .Name }} in metadata.name")
    assert made.spec["dnsName"] == "b1.example.com"
    assert gate.count("apply DNSRecord") == 1


async def test_a_namespace_that_is_missing_is_said() -> None:
    """It is not created."""
    template = TEMPLATE.replace("  labels:", "  namespace: names\n  labels:")
    async with site(template) as (r, _):
        said = await told(r, "False", "NamespaceNotFound")
        await r.user.create(NAMESPACES, {"metadata": {"name": "names"}})
        await told(r, "True", "RecordApplied")
        made = await r.user.get(RECORD, "b1", "names")
    assert said.message == "namespace names of DNSRecord names/b1 does not exist: create it"
    assert made.spec["targets"] == ["192.0.2.1"]


async def test_an_api_that_fails_is_said_and_tried_again() -> None:
    """Any other error than those above."""
    async with site() as (r, gate):

        async def trap(what: str, when: str) -> None:
            if what.startswith("apply DNSRecord"):
                raise Unavailable("the connection was cut")

        gate.trap = trap
        await r.user.patch(KINDS.bmc, "b1", {"spec": {"hostname": "new.example.com"}})
        said = await told(r, "False", "ApplyFailed")
        gate.trap = None
        await told(r, "True", "RecordApplied")
        made = await record(r)
    assert said.message == "the API did not accept the DNS record: the connection was cut"
    assert made.spec["dnsName"] == "new.example.com"


async def test_a_record_may_be_of_a_built_in_kind() -> None:
    """Such as a ConfigMap that a DNS server reads."""
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'dns-{{ .Name }}'}\ndata:\n  host: {{ .Hostname }}\n"
    async with site(template) as (r, _):
        await told(r, "True", "RecordApplied")
        made = await r.user.get(CONFIG_MAP, "dns-b1", NS)
        bmc = await r.bmc()
    assert made.data == {"host": "b1.example.com"}
    assert condition(bmc, "DNSRecordApplied").message == "ConfigMap metal-system/dns-b1 matches the template"
