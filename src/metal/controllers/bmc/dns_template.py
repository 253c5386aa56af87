"""The template of the DNS records of BMCs: one object in YAML, with `{{ .Field }}` where a field of the BMC belongs.

The document is parsed before anything is filled in, so that no value, which may come from a BMC, becomes YAML.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from metal.api.bmc import BMC
from metal.controllers.bmc.dns_fields import Field, find
from metal.controllers.shared import yamltree
from metal.controllers.shared.yamltree import Invalid

_LARGEST = 1 << 20
"""Bytes; an API takes no larger object."""
_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PLAIN = re.compile(r"\s*((?:\.[A-Za-z_][A-Za-z0-9_]*)+)\s*")
_OPEN, _CLOSE = "\ue000", "\ue001"
"""What stands in the document for `{{` and `}}` while it is parsed: characters for private use."""
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")
_TYPED = re.compile(r"-?(0|[1-9][0-9]{0,17})|true|false")
"""What an unquoted value becomes a number or truth value by; 0012 and 1e3 are serial numbers rather than that."""
_API_VERSION = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[a-z0-9]+")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


class FieldEmpty(Exception):
    """The BMC has no value for a field that the template uses. str() is a sentence."""


@dataclass(frozen=True)
class _Text:
    """A scalar with fields in it: texts and fields in turn."""

    parts: tuple[str | Field, ...]
    typed: bool
    """Whether it may become a number or a truth value."""


@dataclass(frozen=True)
class Template:
    """A template that was found to be good. apiVersion and kind are those of every record."""

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
    """The template in a text. Raises Invalid with line and fix."""
    if len(text) > _LARGEST:
        raise Invalid(f"{source}: is larger than {_LARGEST >> 20} MiB: it cannot be one object")
    masked, fields = _mask(text, source)
    root = _document(masked, source)
    if root is None:
        raise Invalid(f"{source}: is empty: write one object with apiVersion, kind and metadata.name")
    _check(root, fields)
    reader = _Reader(source, fields)
    tree = {key: reader.node(node, typed=key != "metadata") for key, node in root.nodes.items()}
    return Template(root.raw("apiVersion"), root.raw("kind"), tree)


def _mask(text: str, source: str) -> tuple[str, list[Field]]:
    """The text with a mark for each field, and the fields; lines stay where they are."""
    fields: list[Field] = []
    if odd := re.search(f"[{_OPEN}{_CLOSE}]", text):
        raise _invalid(source, text, odd.start(), f"the character U+{ord(odd[0]):04X} has no meaning: remove it")

    def mark(found: re.Match[str]) -> str:
        fields.append(_field(found, text, source))
        return f"{_OPEN}{len(fields) - 1}{_CLOSE}"

    masked = _BRACES.sub(mark, text)
    if "{{" in masked:
        raise _invalid(source, masked, masked.index("{{"), "{{ is not closed: write {{ .Name }}")
    return masked, fields


def _field(found: re.Match[str], text: str, source: str) -> Field:
    shown = "{{" + found[1] + "}}"
    plain = _PLAIN.fullmatch(found[1])
    if plain is None or "\n" in found[1]:
        raise _invalid(source, text, found.start(), f"{shown.splitlines()[0]} {_advice(found[1])}")
    try:
        return find(plain[1])
    except LookupError as exc:
        raise _invalid(source, text, found.start(), f"{shown}: {exc.args[0]}") from None


def _advice(expression: str) -> str:
    words = expression.strip("- \t\n").split()
    word = words[0] if words else ""
    if word in ("range", "end"):
        return "is no plain field. For all labels write `labels: {{ .Labels }}` in place of the loop"
    if _PLAIN.fullmatch(expression.strip("-")):
        return "trims what is around it: write it without hyphens"
    return "is no plain field: only {{ .Name }}, {{ .Hostname }} and the like are filled in, nothing is computed"


def _invalid(source: str, text: str, at: int, problem: str) -> Invalid:
    line = text.count("\n", 0, at) + 1
    return Invalid(f"{source} line {line}: {problem}")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _document(text: str, source: str) -> yamltree.Mapping | None:
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise Invalid(f"{source} line {_line(event)}: *{event.anchor} repeats what is elsewhere: write it out")
        return yamltree.read(text, source)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise Invalid(f"{source} line {line}: this is not YAML: {exc.problem}") from None
    except yaml.YAMLError as exc:
        raise Invalid(f"{source}: this is not YAML: {exc}") from None


def _check(root: yamltree.Mapping, fields: list[Field]) -> None:
    """What every record needs, and what it must not say."""
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
        if any(fields[int(mark)].many for mark in _MARK.findall(value)):
            raise metadata.invalid(key, "must be a single value, such as {{ .Name }}")
    for key in ("ownerReferences", "generateName"):
        if key in metadata.nodes:
            raise metadata.invalid(key, "cannot be used here: the record belongs to its BMC and has its own name")


class _Reader:
    """Makes plain values of a document's nodes, with `_Text` where fields are. Untyped, every scalar is a text."""

    def __init__(self, source: str, fields: list[Field]) -> None:
        self._source, self._fields = source, fields
        self._scalars = yaml.constructor.SafeConstructor()

    def node(self, node: yaml.Node, *, typed: bool) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, typed=typed)
        if isinstance(node, yaml.SequenceNode):
            return [self.node(child, typed=typed) for child in node.value]
        scalar = cast("yaml.ScalarNode", node)
        return self._text(scalar, typed=typed) if _MARK.search(scalar.value) else self._scalar(scalar, typed=typed)

    def _mapping(self, node: yaml.MappingNode, *, typed: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or _MARK.search(key.value):
                raise self._invalid(key, "a key must be a plain word, without a field in it")
            if key.value in found:
                raise self._invalid(key, f"{key.value} is there a second time: remove one of them")
            found[str(key.value)] = self.node(value, typed=typed)
        return found

    def _scalar(self, node: yaml.ScalarNode, *, typed: bool) -> Any:
        if not typed or node.tag.endswith((":timestamp", ":str")) or ":" in node.value:
            return str(node.value)  # YAML 1.1 has dates, and takes 12:34:56 for a number to base 60
        try:
            return self._scalars.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError):
            raise self._invalid(node, f"{node.value!r} is no value of {node.tag}: write it without a tag") from None

    def _text(self, node: yaml.ScalarNode, *, typed: bool) -> _Text:
        pieces = enumerate(_MARK.split(node.value))
        parts = tuple(self._fields[int(piece)] if at % 2 else piece for at, piece in pieces if at % 2 or piece)
        plain = node.style is None
        for part in parts:
            if isinstance(part, Field) and part.many and not (plain and len(parts) == 1):
                raise self._invalid(node, f"{part} is a mapping: write it alone and without quotes, or one of its keys")
        return _Text(parts, typed=plain and typed)

    def _invalid(self, node: yaml.Node, problem: str) -> Invalid:
        return Invalid(f"{self._source} line {node.start_mark.line + 1}: {problem}")


def _filled(node: Any, bmc: BMC, namespace: str) -> Any:
    if isinstance(node, dict):
        return {key: _filled(value, bmc, namespace) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, bmc, namespace) for value in node]
    if not isinstance(node, _Text):
        return node
    values = list(_values(node, bmc, namespace))
    if isinstance(values[0], dict):
        return values[0]
    text = "".join(values)
    return msgspec.json.decode(text) if node.typed and _TYPED.fullmatch(text) else text


def _values(text: _Text, bmc: BMC, namespace: str) -> Iterator[Any]:
    for part in text.parts:
        if isinstance(part, str):
            yield part
            continue
        value = part.of(bmc, namespace)
        if value is None:
            raise FieldEmpty(f"{part.path} of the BMC is empty, and the DNS record's template uses it: set it, or "
                             "take it out of the template")  # fmt: skip
        yield value
