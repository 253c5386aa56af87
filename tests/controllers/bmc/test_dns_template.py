"""The template of DNS records: which fields are replaced, what is refused, and that values never become YAML."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.bmc import BMC
from metal.controllers.bmc.dns_template import FieldEmpty, load, parse
from metal.controllers.shared.yamltree import Invalid

HEAD = "apiVersion: dns.example/v1\nkind: DNSRecord\nmetadata:\n  name: {{ .Name }}\n"


def bmc(**more: Any) -> BMC:
    """A BMC that has said who it is."""
    body = {
        "metadata": {
            "name": "b1",
            "uid": "u1",
            "labels": {"rack": "r7", "ttl": "300"},
            "annotations": {"room": "2"},
        },
        "spec": {
            "bmcUUID": "m1",
            "hostname": "b1.example.com",
            "access": {"ip": "192.0.2.1"},
            "protocol": {"name": "Redfish", "port": 443, "scheme": "https"},
        },
        "status": {"ip": "192.0.2.1", "macAddress": "a0:b1:c2:00:00:01", "serialNumber": "0012", **more},
    }
    return msgspec.convert(body, BMC)


def rendered(value: str) -> Any:
    """What becomes of one value of the record."""
    return parse(f"{HEAD}spec:\n  value: {value}\n", "dns.yaml").render(bmc(), "metal-system")["spec"]["value"]


def refusal(text: str) -> str:
    """What is said about a template."""
    with pytest.raises(Invalid) as refused:
        parse(text, "dns.yaml")
    return str(refused.value)


def test_a_record_is_the_document_with_the_fields_filled_in() -> None:
    """Block, flow and quoted scalars; everything else stays as it was written, dates and times too."""
    template = parse(
        HEAD
        + "  namespace: {{ .Namespace }}\n  labels: {{ .Labels }}\n"
        + 'spec:\n  name: "{{ .Hostname }}."\n  targets: [{{ .IP }}, "{{.MACAddress}}"]\n'
        + "  ttl: 300\n  proxied: false\n  since: 2026-01-01\n  at: 12:34:56\n  none: null\n"
        + "  note: |\n    {{ .Name }} of\n    {{ .Spec.Protocol.Name }}\n",
        "dns.yaml",
    )

    assert (template.api_version, template.kind) == ("dns.example/v1", "DNSRecord")
    assert template.render(bmc(), "metal-system") == {
        "apiVersion": "dns.example/v1",
        "kind": "DNSRecord",
        "metadata": {"name": "b1", "namespace": "metal-system", "labels": {"rack": "r7", "ttl": "300"}},
        "spec": {
            "name": "b1.example.com.", "targets": ["192.0.2.1", "a0:b1:c2:00:00:01"], "ttl": 300, "proxied": False,
            "since": "2026-01-01", "at": "12:34:56", "none": None, "note": "b1 of\nRedfish\n",
        },
    }  # fmt: skip


@pytest.mark.parametrize("reference", [".IP", ".ip", ".BMCStatus.IP", ".Status.IP", ".status.ip"])
def test_a_field_has_the_spelling_of_the_api_and_that_of_go(reference: str) -> None:
    """Spec and status may be left out, since Go's operator embeds both in the struct that templates see."""
    assert rendered(f"{{{{ {reference} }}}}") == "192.0.2.1"


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        (".Name", "b1"),
        (".metadata.uid", "u1"),
        (".Namespace", "metal-system"),
        (".Labels.rack", "r7"),
        (".metadata.labels.rack", "r7"),
        (".metadata.annotations.room", "2"),
        (".spec.hostname", "b1.example.com"),
        (".BMCSpec.Hostname", "b1.example.com"),
        (".spec.bmcUUID", "m1"),
        (".Protocol.Name", "Redfish"),
        (".Protocol.Scheme", "https"),
        (".MACAddress", "a0:b1:c2:00:00:01"),
        (".Manufacturer", "Maker"),
        (".Model", "M"),
        (".SKU", "S"),
        (".SerialNumber", "0012"),
        (".FirmwareVersion", "1.5"),
    ],
)
def test_each_named_field_is_replaced_by_its_value(reference: str, value: str) -> None:
    """Quoted, so that each is a string."""
    said = {"manufacturer": "Maker", "model": "M", "sku": "S", "firmwareVersion": "1.5"}
    template = parse(f"{HEAD}spec: '{{{{ {reference} }}}}'\n", "dns.yaml")
    assert template.render(bmc(**said), "metal-system")["spec"] == value


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        ("{{ .Protocol.Port }}", 443),
        ('"{{ .Protocol.Port }}"', "443"),
        ("{{ .Labels.ttl }}", 300),
        ("{{ .SerialNumber }}", "0012"),
        ("port-{{ .Protocol.Port }}", "port-443"),
        ("{{ .Labels }}", {"rack": "r7", "ttl": "300"}),
    ],
)
def test_an_unquoted_number_is_a_number_and_anything_quoted_a_text(value: str, becomes: Any) -> None:
    """A serial number with zeros before it stays what it is."""
    assert rendered(value) == becomes


def test_a_name_is_a_text_even_where_it_is_a_number() -> None:
    """The API takes only texts in metadata."""
    made = parse(HEAD + "  labels: {port: {{ .Protocol.Port }}, floor: 3}\n", "dns.yaml").render(bmc(), "metal-system")
    assert made["metadata"]["labels"] == {"port": "443", "floor": "3"}


@pytest.mark.parametrize("value", ["{{ .Labels.row }}", "{{ .Model }}", "x{{ .SKU }}", "{{ .Annotations.rack }}"])
def test_a_field_without_a_value_stops_the_record_and_is_named(value: str) -> None:
    """Rather no record than one with a hole in it."""
    with pytest.raises(FieldEmpty, match=r"the BMC has no value for .*: set it, or remove .* from the template"):
        rendered(value)


@pytest.mark.behaviour(
    "BMC",
    "`dnsRecordTemplate` accepts plain fields only; anything else is refused with line and fix.",
    go="Renders a template.",
)
@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("range $k, $v := .Labels", "no functions, conditions or loops; for all labels write `labels: {{ .Labels }}`"),
        ("- .Name -", "only fields such as {{ .Name }} are replaced"),
        (".Name | printf", "only fields such as {{ .Name }} are replaced"),
        ("if .IP", "no functions, conditions or loops"),
        ("$.Name", "only fields such as {{ .Name }} are replaced"),
        ("", "only fields such as {{ .Name }} are replaced"),
        ('index .Labels "a/b"', "no functions, conditions or loops"),
        ("/* why */", "only fields such as {{ .Name }} are replaced"),
        (".__class__", "unknown field __class__: use one of Namespace, Name, UID, Labels, Annotations, Hostname"),
        (".Password", "unknown field Password: use one of Namespace, Name, "),
        (".Spec", "unknown field Spec: "),
        (".Protocol", "unknown field Protocol: "),
        (".Protocol.Host", "unknown field Protocol.Host: "),
        (".Name.x", "unknown field Name.x: "),
        (".Namespace.x", "unknown field Namespace.x: "),
        (".Metadata.ResourceVersion", "unknown field Metadata.ResourceVersion: "),
        (".Spec.IP", "unknown field Spec.IP: "),
        (".Conditions", "unknown field Conditions: "),
        (".Systems", "unknown field Systems: "),
        (".Labels.a.b", "unknown field Labels.a.b: "),
    ],
)
def test_anything_but_a_plain_field_is_refused_with_its_line_and_the_fix(expression: str, sentence: str) -> None:
    """In the record as well as in a comment."""
    for lead in ("value: ", "# value: "):
        told = refusal(f"{HEAD}spec:\n  {lead}{{{{{expression}}}}}\n")
        assert told.startswith("dns.yaml line 6: ")
        assert sentence in told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "dns.yaml: is empty"),
        ("- a\n", "dns.yaml line 1: the file must be a mapping"),
        ("kind: A\nmetadata: {name: a}\n", "apiVersion is missing or empty"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "kind is missing or empty"),
        ("apiVersion: v1\nkind: A\n", "metadata is missing: write metadata.name"),
        ("apiVersion: v1\nkind: A\nmetadata: a\n", "line 3: metadata must be a mapping"),
        ("apiVersion: v1\nkind: A\nmetadata: {namespace: a}\n", "line 3: name is missing or empty"),
        ("apiVersion: v1\nkind: A\nmetadata:\n  name: {{ .Labels }}\n", "line 4: name must be a single value"),
        ("apiVersion: v1\nkind: {{ .Name }}\nmetadata: {name: a}\n", "line 2: kind must be the same for every BMC"),
        ("apiVersion: a/b/c\nkind: A\nmetadata: {name: a}\n", "line 1: apiVersion must be the same for every BMC"),
        (HEAD + "  ownerReferences: []\n", "line 5: ownerReferences cannot be set"),
        (HEAD + "  generateName: a\n", "line 5: generateName cannot be set"),
        (HEAD + "spec:\n  {{ .Name }}: a\n", "line 6: a key must be a plain word"),
        (HEAD + "spec:\n  a: 1\n  a: 2\n", "line 7: a is set twice"),
        (HEAD + "spec: '{{ .Labels }}'\n", "line 5: .Labels is a mapping: write it alone"),
        (HEAD + "spec: {{ .Name }}{{ .Labels }}\n", "line 5: .Labels is a mapping: write it alone"),
        (HEAD + "spec: &a [*a]\n", "line 5: aliases such as *a are not supported"),
        (HEAD + "spec: !!python/name:os.system a\n", "line 5: 'a' is not a value of"),
        (HEAD + "spec: {{ .Name\n", "line 5: {{ is not closed"),
        (HEAD + "spec: [\n", "not valid YAML"),
        (HEAD + "spec: a\x07\n", "not valid YAML"),
        (HEAD + "---\nkind: Other\n", "line 5: not valid YAML: but found another document"),
        (HEAD + "spec: \ue0000\ue001\n", "line 5: the character U+E000 is not allowed"),
        (HEAD + "#" * (1 << 20), "is larger than 1 MiB"),
    ],
)
def test_a_document_that_cannot_be_a_record_is_refused(text: str, sentence: str) -> None:
    """With the line where there is one, before anything runs."""
    assert sentence in refusal(text)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    """The option is named."""
    binary = tmp_path / "dns.bin"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid, match=r"cannot be read \(No such file or directory\); check dnsRecordTemplate"):
        load(tmp_path / "nothing.yaml")
    with pytest.raises(Invalid, match=r"dns.bin: is not UTF-8 text \(byte 0\)"):
        load(binary)


@given(st.text(max_size=300))
def test_no_value_of_a_bmc_becomes_anything_but_that_value(said: str) -> None:
    """Whatever a BMC says of itself, the rest of the record is as written."""
    template = parse(HEAD + "spec:\n  model: {{ .Model }}\n  note: 'a {{ .Model }}: b'\n  last: true\n", "dns.yaml")
    if not said:
        with pytest.raises(FieldEmpty):
            template.render(bmc(model=said), "n")
        return
    made = template.render(bmc(model=said), "n")
    model = made["spec"].pop("model")
    assert (str(model).lower() if isinstance(model, bool) else str(model)) == said
    assert made == {
        "apiVersion": "dns.example/v1", "kind": "DNSRecord", "metadata": {"name": "b1"},
        "spec": {"note": f"a {said}: b", "last": True},
    }  # fmt: skip


PIECES = ["{{", "}}", "{{ .Name }}", "{{ .Labels }}", "{{ range }}", ": ", "\n", "\n  ", "- ", "'", '"', "&a", "*a",
          "spec:", "metadata:", "name:", "#", "|", "!!int", "{", "[", "]", ",", "12", "\ue000", "a"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_is_refused_with_its_place_or_makes_a_record(text: str) -> None:
    """Nothing else is raised, and no braces are left."""
    made = outcome(HEAD + text)
    assert made.startswith(("dns.yaml", "{'apiVersion': 'dns.example/v1', 'kind': 'DNSRecord'"))
    assert made.startswith("dns.yaml") or "{{ ." not in made


def outcome(text: str) -> str:
    """The record as text, or the refusal."""
    try:
        return repr(parse(text, "dns.yaml").render(bmc(), "metal-system"))
    except Invalid as exc:
        return str(exc)
