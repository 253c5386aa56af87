"""The template of DNS records: what is filled in, what is refused at the start, and that values never become YAML."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.api.bmc import BMC, BMCSpec, BMCStatus
from metal.controllers.bmc import dns_fields
from metal.controllers.bmc.dns_template import FieldEmpty, load, parse
from metal.controllers.shared.yamltree import Invalid

HEAD = "apiVersion: dns.example/v1\nkind: DNSRecord\nmetadata:\n  name: {{ .Name }}\n"


def bmc(**more: Any) -> BMC:
    """A BMC that has said who it is."""
    body = {
        "metadata": {"name": "b1", "labels": {"rack": "r7", "ttl": "300"}},
        "spec": {
            "hostname": "b1.example.com",
            "access": {"ip": "192.0.2.1"},
            "protocol": {"name": "Redfish", "port": 443},
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


@pytest.mark.parametrize(
    "reference",
    [".IP", ".ip", ".BMCStatus.IP", ".Status.IP", ".status.ip", ".Endpoint.IP", ".spec.access.ip", ".Access.IP"],
)
def test_a_field_has_the_spelling_of_the_api_and_that_of_go(reference: str) -> None:
    """Spec and status may be left out, as Go's operator embeds both; Endpoint is what Go calls access."""
    assert rendered(f"{{{{ {reference} }}}}") == "192.0.2.1"


def led_to(reference: str) -> str:
    """The path of the field, or why it is none."""
    try:
        return dns_fields.find(reference).path
    except LookupError as exc:
        return str(exc)


@pytest.mark.parametrize("root", [BMCSpec, BMCStatus])
def test_every_field_is_found_in_both_spellings_or_said_to_be_no_single_value(root: type) -> None:
    """None is hidden by another of spec or status."""
    prefix = "spec" if root is BMCSpec else "status"
    for name in root.__struct_encode_fields__:  # type: ignore[attr-defined]  # a Struct
        for spelling in (name, name[0].upper() + name[1:], f"{prefix}.{name}"):
            assert led_to(f".{spelling}").partition(" is ")[0] == f"{prefix}.{name}"


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


@pytest.mark.parametrize("value", ["{{ .Labels.row }}", "{{ .Model }}", "x{{ .BMCUUID }}", "{{ .TLS.Fingerprint }}"])
def test_a_field_without_a_value_stops_the_record_and_is_named(value: str) -> None:
    """Rather no record than one with a hole in it."""
    with pytest.raises(FieldEmpty, match="of the BMC is empty, and the DNS record's template uses it"):
        rendered(value)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("range $k, $v := .Labels", "write `labels: {{ .Labels }}` in place of the loop"),
        ("- .Name -", "write it without hyphens"),
        (".Name | printf", "nothing is computed"),
        ("if .IP", "nothing is computed"),
        ("$.Name", "nothing is computed"),
        ("", "nothing is computed"),
        ('index .Labels "a/b"', "nothing is computed"),
        ("/* why */", "nothing is computed"),
        (".__class__", "a BMC has no field __class__: use Name, Namespace, Labels"),
        (".Password", "a BMC has no field Password"),
        (".Spec", "spec is no single value: go on with one of bmcUUID, "),
        (".Protocol", "spec.protocol is no single value: go on with one of name, port, scheme"),
        (".Protocol.Host", "spec.protocol has no field Host: use one of name, port, scheme"),
        (".Name.x", "metadata.name has no field x"),
        (".Namespace.x", "a BMC has no field Namespace"),
        (".Metadata.ResourceVersion", "metadata has no field ResourceVersion: use one of name, "),
        (".Conditions", "status.conditions is a list"),
        (".Systems", "status.systems is no single value"),
        (".Labels.a.b", "metadata.labels.a is a single value"),
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
        (HEAD + "  ownerReferences: []\n", "line 5: ownerReferences cannot be used here"),
        (HEAD + "  generateName: a\n", "line 5: generateName cannot be used here"),
        (HEAD + "spec:\n  {{ .Name }}: a\n", "line 6: a key must be a plain word"),
        (HEAD + "spec:\n  a: 1\n  a: 2\n", "line 7: a is there a second time"),
        (HEAD + "spec: '{{ .Labels }}'\n", "line 5: {{ .metadata.labels }} is a mapping: write it alone"),
        (HEAD + "spec: {{ .Name }}{{ .Labels }}\n", "line 5: {{ .metadata.labels }} is a mapping: write it alone"),
        (HEAD + "spec: &a [*a]\n", "line 5: *a repeats what is elsewhere"),
        (HEAD + "spec: !!python/name:os.system a\n", "line 5: 'a' is no value of"),
        (HEAD + "spec: {{ .Name\n", "line 5: {{ is not closed"),
        (HEAD + "spec: [\n", "this is not YAML"),
        (HEAD + "spec: a\x07\n", "this is not YAML"),
        (HEAD + "---\nkind: Other\n", "line 5: this is not YAML: but found another document"),
        (HEAD + "spec: \ue0000\ue001\n", "line 5: the character U+E000 has no meaning"),
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
