"""The fields of a BMC as the template of DNS records names them: in the API's spelling, and in that of Go's structs.

Go's operator shows templates a struct with Name, Namespace and Labels, into which spec and status are embedded; so
`.IP`, `.BMCStatus.IP` and `.status.ip` are the same here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

from metal.api.bmc import BMC, BMCSpec, BMCStatus
from metal.api.meta import ObjectMeta

_METADATA = ("name", "uid", "labels", "annotations")
"""What of metadata is the same for as long as people leave it alone."""
_ROOTS = {"metadata": "metadata", "spec": "spec", "bmcspec": "spec", "status": "status", "bmcstatus": "status"}
_STRUCTS: dict[str, type] = {"metadata": ObjectMeta, "spec": BMCSpec, "status": BMCStatus}
_GO_NAMES = {"endpoint": "access"}
"""Where Go's name is another word than the API's."""


@dataclass(frozen=True)
class Field:
    """One field. `attributes` lead to it from the BMC; empty for the manager's namespace."""

    path: str
    """In the API's spelling, for people."""
    attributes: tuple[str, ...]
    many: bool = False
    """Whether it is a mapping of texts, such as labels."""

    def __str__(self) -> str:
        return "{{ ." + self.path + " }}"

    def of(self, bmc: BMC, namespace: str) -> Any:
        """The value as a text, or a mapping of texts; None when there is none."""
        value: Any = bmc if self.attributes else namespace
        for name in self.attributes:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
            if value is None:
                return None
        if self.many:
            return dict(value)
        plain = msgspec.to_builtins(value)
        return (str(plain).lower() if isinstance(plain, bool) else str(plain)) or None


def find(reference: str) -> Field:
    """The field that `.A.B` names. Raises LookupError with a sentence that says what to write."""
    first, *rest = reference.removeprefix(".").split(".")
    word = first.lower()
    if word == "namespace" and not rest:
        return Field("namespace", ())
    if word in ("name", "labels"):
        return _within("metadata", [word, *rest])
    if word in _ROOTS:
        return _within(_ROOTS[word], rest)
    for root in ("spec", "status"):
        if _matching(_fields(root), first) is not None:
            return _within(root, [first, *rest])
    raise LookupError(f"a BMC has no field {first}: use Name, Namespace, Labels, or a field of spec or status, such as "
                      "Hostname, IP or MACAddress")  # fmt: skip


def _within(root: str, words: Sequence[str]) -> Field:
    fields, path, attributes, many = _fields(root), root, [root], False
    for at, word in enumerate(words):
        found = _matching(fields, word)
        if found is None:
            raise LookupError(f"{path} has no field {word}: use one of {_names(fields)}")
        path, attributes = f"{path}.{found.encode_name}", [*attributes, found.name]
        kind = _bare(found.type)
        if isinstance(kind, inspect.DictType):
            return _of_mapping(path, attributes, words[at + 1 :], texts=isinstance(kind.value_type, inspect.StrType))
        fields = kind.fields if isinstance(kind, inspect.StructType) else ()
        many = isinstance(kind, inspect.VarTupleType)
    if fields:
        raise LookupError(f"{path} is no single value: go on with one of {_names(fields)}")
    if many:
        raise LookupError(f"{path} is a list, which has no place in a DNS record")
    return Field(path, tuple(attributes))


def _of_mapping(path: str, attributes: Sequence[str], keys: Sequence[str], *, texts: bool) -> Field:
    if not texts and not keys:
        raise LookupError(f"{path} is no single value: go on with one of its keys")
    if len(keys) > 1:
        raise LookupError(f"{path}.{keys[0]} is a single value: end there")
    return Field(".".join((path, *keys)), (*attributes, *keys), many=not keys)


def _fields(root: str) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(_STRUCTS[root])
    fields = found.fields if isinstance(found, inspect.StructType) else ()
    return tuple(field for field in fields if root != "metadata" or field.name in _METADATA)


def _matching(fields: Sequence[inspect.Field], word: str) -> inspect.Field | None:
    """The field of this name in the API's capitals or in Go's, which write initials as MACAddress does."""
    wanted = word.lower()
    names = {field.encode_name.lower(): field for field in fields}
    return names.get(wanted) or names.get(_GO_NAMES.get(wanted, ""))


def _names(fields: Sequence[inspect.Field]) -> str:
    return ", ".join(field.encode_name for field in fields)


def _bare(kind: inspect.Type) -> inspect.Type:
    """The type behind Optional and Annotated."""
    if isinstance(kind, inspect.Metadata):
        return _bare(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next((_bare(one) for one in kind.types if not isinstance(one, inspect.NoneType)), kind)
    return kind
