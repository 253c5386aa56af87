"""Checks that an applied configuration matches the schema, in the words of structured-merge-diff."""

from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.machinery import object_meta, status
from metal.apiserver.machinery.resources import Resource
from metal.apiserver.machinery.structural import Node
from metal.apiserver.patching.field_set import element_text, item_element
from metal.apiserver.schema.go_types import go_text

_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def check(resource: Resource, obj: Mapping[str, Any]) -> None:
    """Raises StatusError 500, as kube-apiserver does, when an applied configuration does not match the schema."""
    if found := problems(_whole(resource.schema.root), obj):
        meta = obj["metadata"]
        subject = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {_version(resource)}, Kind={resource.kind}"
        raise status.unspecified_error(f"failed to create typed patch object ({subject}): {sentence(found)}")


def _version(resource: Resource) -> str:
    return resource.api_version if resource.group else f"/{resource.version}"


def _whole(root: Node) -> Node:
    text = Node(type="string")
    fields = {**root.fields, "apiVersion": text, "kind": text, "metadata": object_meta.NODE}
    return Node(type="object", fields=fields, extra=root.extra, preserve=root.preserve)


def problems(node: Node, value: Any, path: str = "") -> list[str]:
    """Every mismatch, each as `.spec.size: expected numeric (int or float), got string`."""
    return [f"{where}: {message}" for where, message in _problems(node, value, path)]


def sentence(found: list[str]) -> str:
    """One problem as is, several as a list."""
    return found[0] if len(found) == 1 else "errors:\n  " + "\n  ".join(found)


def _problems(node: Node, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if value is None or _anything(node):
        return
    if node.fields or node.extra is not None or node.type == "object":
        if not isinstance(value, dict):
            yield path, f"expected map, got &{{{go_text(value)}}}"
        else:
            yield from _map(node, value, path)
    elif node.type == "array":
        if not isinstance(value, list):
            yield path, f"expected list, got &{{{go_text(value)}}}"
        else:
            yield from _list(node, value, path)
    elif message := _scalar(node, value):
        yield path, message


def _anything(node: Node) -> bool:
    return not node.type and not node.int_or_string and not node.fields and node.extra is None


def _map(node: Node, value: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, item in value.items():
        sub = node.child(name)
        if sub is not None:
            yield from _problems(sub, item, f"{path}.{name}")
        elif not node.preserve and not node.embedded:
            yield f"{path}.{name}", "field not declared in schema"
            return


def _list(node: Node, value: list[Any], path: str) -> Iterator[tuple[str, str]]:
    items = node.items or Node()
    if node.list_type == "atomic":
        for index, item in enumerate(value):
            yield from _problems(items, item, f"{path}[{index}]")
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        if message := _mismatch(node, item):
            yield path, f"element {index}: associative list {message}"
            return
        key = item_element(node, item)
        if key is None:
            names = " ".join(f'"{name}"' for name in node.list_keys)
            message = f"associative list with keys has an element that omits all key fields [{names}]"
            yield path, f"element {index}: {message} (and doesn't have default values for any key fields)"
            return
        if key in seen:
            yield path, f"duplicate entries for key {element_text(key)}"
        seen.add(key)
        yield from _problems(items, item, path + element_text(key))


def _mismatch(node: Node, item: Any) -> str:
    """Why no value of this schema can have a key."""
    if node.list_keys:
        if item is None:
            return "with keys may not have a null element"
        return "" if isinstance(item, dict) else "with keys may not have non-map elements"
    kind = {dict: "a map type", list: "a list type", type(None): "an explicit null"}.get(type(item))
    return f"without keys has an element that's {kind}" if kind else ""


def _scalar(node: Node, value: Any) -> str:
    if node.int_or_string:
        return "" if not isinstance(value, list | dict) else f"expected any scalar, got &{{{go_text(value)}}}"
    if node.type in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"expected numeric (int or float), got {_GO_TYPES.get(type(value), 'nil')}"
    if node.type == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_text(value)}}}"
    if node.type == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_text(value)}}}"
    return ""
