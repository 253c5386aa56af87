"""The template of the DNS records of BMCs: one YAML object in which `{{ .Field }}` stands for a field of the BMC.

The document is parsed before any field is replaced, so a value, which may come from a BMC, is never read as YAML. Only
the fields below are replaced: functions, conditions, loops and pipelines of Go templates are refused at load time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import yaml

from metal.api.bmc import BMC
from metal.controllers.shared import yamltree
from metal.controllers.shared.yamltree import Invalid

_FIELDS = {
    "metadata": {"Name": "name", "UID": "uid", "Labels": "labels", "Annotations": "annotations"},
    "spec": {
        "Hostname": "hostname", "BMCUUID": "bmc_uuid", "Protocol.Name": "protocol.name",
        "Protocol.Port": "protocol.port", "Protocol.Scheme": "protocol.scheme",
    },
    "status": {
        "IP": "ip", "MACAddress": "mac_address", "Manufacturer": "manufacturer", "Model": "model", "SKU": "sku",
        "SerialNumber": "serial_number", "FirmwareVersion": "firmware_version",
    },
}  # fmt: skip
"""Name in a template and attribute, by part of the BMC. Namespace, the manager's own, is the only other field."""
_ATTRIBUTES = {name: f"{part}.{path}" for part, names in _FIELDS.items() for name, path in names.items()}
_SPELLINGS = {"namespace": "Namespace"} | {
    f"{prefix}{name}".lower(): name
    for part, names in _FIELDS.items()
    for name in names
    for prefix in ("", f"{part}.", f"bmc{part}.")
}
"""Field by lower-case spelling. Go's structs embed spec and status: .IP, .BMCStatus.IP and .status.ip are the same."""
_MAPPINGS = ("Labels", "Annotations")
_LARGEST = 1 << 20
"""Bytes; an API takes no larger object."""
_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_REFERENCE = re.compile(r"\s*\.([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)[ \t]*")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""What stands for `{{` and `}}` while the document is parsed: characters for private use."""
_MARK = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_TYPED = re.compile(r"-?(0|[1-9][0-9]{0,17})|true|false")
"""Unquoted values that become a number or a boolean; 0012 and 1e3 are serial numbers."""
_API_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


class FieldEmpty(Exception):
    """The BMC has no value for a field that the template uses. str() is a sentence."""


@dataclass(frozen=True)
class _Text:
    """A scalar with fields in it, which are marked; typed when it may become a number or a boolean."""

    text: str
    typed: bool


@dataclass(frozen=True)
class Template:
    """A valid template. apiVersion and kind are those of every record."""

    api_version: str
    kind: str
    _tree: Mapping[str, Any] = field(repr=False)

    def render(self, bmc: BMC, namespace: str) -> dict[str, Any]:
        """The record of this BMC; `namespace` is the manager's own. Raises FieldEmpty."""
        return {key: _filled(node, bmc, namespace) for key, node in self._tree.items()}


def load(path: Path) -> Template:
    """The template in a file. Raises Invalid with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as exc:
        raise Invalid(f"{path}: cannot be read ({exc.strerror}); check dnsRecordTemplate") from None
    except UnicodeDecodeError as exc:
        raise Invalid(f"{path}: is not UTF-8 text (byte {exc.start})") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Template:
    """The template in a text. Raises Invalid with the line and the correction."""
    if len(text) > _LARGEST:
        raise Invalid(f"{source}: is larger than {_LARGEST >> 20} MiB: it cannot be one object")
    root = _document(_mark_fields(text, source), source)
    if root is None:
        raise Invalid(f"{source}: is empty: write one object with apiVersion, kind and metadata.name")
    _check(root)
    tree = {key: _value(node, source, typed=key != "metadata") for key, node in root.nodes.items()}
    return Template(root.raw("apiVersion"), root.raw("kind"), tree)


def _mark_fields(text: str, source: str) -> str:
    """The text with each `{{ .Field }}` marked by its name; lines stay where they are."""
    if odd := re.search(f"[{_OPEN}{_CLOSE}]", text):
        raise _invalid(source, text, odd.start(), f"the character U+{ord(odd[0]):04X} is not allowed: remove it")

    def mark(found: re.Match[str]) -> str:
        try:
            return f"{_OPEN}{_field_name(found[1])}{_CLOSE}"
        except LookupError as exc:
            shown = ("{{" + found[1] + "}}").splitlines()[0]
            raise _invalid(source, text, found.start(), f"{shown}: {exc.args[0]}") from None

    marked = _BRACES.sub(mark, text)
    if "{{" in marked:
        raise _invalid(source, marked, marked.index("{{"), "{{ is not closed: write {{ .Name }}")
    return marked


def _field_name(expression: str) -> str:
    """Name of the field in braces, such as IP or Labels.rack. Raises LookupError with a sentence."""
    found = _REFERENCE.fullmatch(expression)
    if found is None:
        hint = (
            "; for all labels write `labels: {{ .Labels }}`" if expression.split()[:1] in (["range"], ["end"]) else ""
        )
        raise LookupError(f"only fields such as {{{{ .Name }}}} are replaced, no functions, conditions or loops{hint}")
    name = _SPELLINGS.get(found[1].lower(), "")
    if not name:
        owner, _, key = found[1].rpartition(".")
        mapping = _SPELLINGS.get(owner.lower(), "")
        name = f"{mapping}.{key}" if mapping in _MAPPINGS else ""
    if not name:
        known = ", ".join(("Namespace", *_ATTRIBUTES))
        raise LookupError(f"unknown field {found[1]}: use one of {known}, or one label such as Labels.rack")
    return name


def _invalid(source: str, text: str, at: int, problem: str) -> Invalid:
    return Invalid(f"{source} line {text.count(chr(10), 0, at) + 1}: {problem}")


def _document(text: str, source: str) -> yamltree.Mapping | None:
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise Invalid(f"{source} line {line}: aliases such as *{event.anchor} are not supported: write it out")
        return yamltree.read(text, source)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise Invalid(f"{source} line {line}: not valid YAML: {exc.problem}") from None
    except yaml.YAMLError as exc:
        raise Invalid(f"{source}: not valid YAML: {exc}") from None


def _check(root: yamltree.Mapping) -> None:
    """Refuse a document that lacks what every record needs, or sets what the controller sets."""
    for key, pattern, example in (
        ("apiVersion", _API_VERSION, "externaldns.k8s.io/v1alpha1"),
        ("kind", _KIND, "DNSEndpoint"),
    ):
        if not pattern.fullmatch(root.raw(key)):
            raise root.invalid(key, f"must be the same for every BMC, such as {example}")
    metadata = root.mapping("metadata")
    if metadata is None:
        raise root.invalid("metadata", "is missing: write metadata.name, such as name: {{ .Name }}")
    for key, value in (("name", metadata.raw("name")), ("namespace", metadata.text("namespace", ""))):
        if any(name in _MAPPINGS for name in _MARK.findall(value)):
            raise metadata.invalid(key, "must be a single value, such as {{ .Name }}")
    for key in ("ownerReferences", "generateName"):
        if key in metadata.nodes:
            raise metadata.invalid(key, "cannot be set: the BMC owns its record, and the record has a fixed name")


def _value(node: yaml.Node, source: str, *, typed: bool) -> Any:
    """The plain value of a node, with `_Text` where fields are. Untyped, every scalar is a string."""
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or _MARK.search(key.value):
                raise _at(source, key, "a key must be a plain word, without a field in it")
            if key.value in found:
                raise _at(source, key, f"{key.value} is set twice: remove one of them")
            found[str(key.value)] = _value(value, source, typed=typed)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, source, typed=typed) for child in node.value]
    plain = getattr(node, "style", None) is None
    for name in (marks := _MARK.findall(node.value)):
        if name in _MAPPINGS and not (plain and _MARK.fullmatch(node.value)):
            raise _at(source, node, f".{name} is a mapping: write it alone and without quotes, or one of its keys")
    return _Text(str(node.value), plain and typed) if marks else _scalar(node, source, typed=typed)


def _scalar(node: yaml.Node, source: str, *, typed: bool) -> Any:
    if not typed or node.tag.endswith((":timestamp", ":str")) or ":" in node.value:
        return str(node.value)  # YAML 1.1 has dates, and reads 12:34:56 as a number to base 60
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.constructor.ConstructorError, ValueError):
        raise _at(source, node, f"{node.value!r} is not a value of {node.tag}: write it without a tag") from None


def _at(source: str, node: yaml.Node, problem: str) -> Invalid:
    return Invalid(f"{source} line {node.start_mark.line + 1}: {problem}")


def _filled(node: Any, bmc: BMC, namespace: str) -> Any:
    if isinstance(node, dict):
        return {key: _filled(value, bmc, namespace) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, bmc, namespace) for value in node]
    if not isinstance(node, _Text):
        return node
    alone = _MARK.fullmatch(node.text)
    if alone is not None and alone[1] in _MAPPINGS:
        return dict(_field(alone[1], bmc, namespace))
    text = _MARK.sub(lambda found: str(_field(found[1], bmc, namespace)), node.text)
    return msgspec.json.decode(text) if node.typed and _TYPED.fullmatch(text) else text


def _field(name: str, bmc: BMC, namespace: str) -> Any:
    """Value of a field. Raises FieldEmpty."""
    mapping, _, key = name.partition(".")
    if name == "Namespace":
        value: Any = namespace
    elif mapping in _MAPPINGS:
        labels = attrgetter(_ATTRIBUTES[mapping])(bmc)
        value = labels.get(key) if key else labels
    else:
        value = attrgetter(_ATTRIBUTES[name])(bmc)
    if value is None or value == "":
        raise FieldEmpty(f"the BMC has no value for {name}: set it, or remove {name} from the template")
    return value
