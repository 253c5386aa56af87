"""Admission of CustomResourceDefinitions: names, versions, structural schemas (apiextensions.k8s.io/v1)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.crd.schema_validation import check_schema
from metal.apiserver.machinery import causes
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.printing.jsonpath import BadPath, compile_path
from metal.kube.meta.names import LABEL_RULE, SUBDOMAIN_RULE, is_label, is_subdomain

Obj = Mapping[str, Any]

_VERSION_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def check(crd: Obj, old: Obj | None = None) -> list[Cause]:
    """Violations in a CRD; with `old`, also changes of immutable fields."""
    spec = crd.get("spec")
    if not isinstance(spec, Mapping):
        return [causes.required("spec")]
    found = [*_identity(crd, spec), *_names(spec), *_conversion(spec), *_version_list(spec)]
    versions = _versions(spec)
    for index, version in enumerate(versions):
        found += _version(version, f"spec.versions[{index}]")
    if len(versions) == 1:
        # kube-apiserver lifts what all versions share out of them: causes name spec.validation and the like.
        found = [cause._replace(field=_lifted(cause.field), message=_lifted_message(cause.message)) for cause in found]
    if old is not None:
        found += _changes(crd, spec, old)
    return found


def _lifted(field: str) -> str:
    for part, above in _ABOVE:
        field = (
            field.replace(f"spec.versions[0].{part}", f"spec.{above}") if field.startswith("spec.versions") else field
        )
    return field


def _lifted_message(message: str) -> str:
    """A message in which places of the schema have the names that `_lifted` gives them."""
    return message.replace(" within spec.versions[0].schema.", " within spec.validation.")


_ABOVE = (
    ("schema.openAPIV3Schema.", "validation.openAPIV3Schema."),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
)


def _versions(spec: Obj) -> list[Obj]:
    versions = spec.get("versions")
    return [v for v in versions if isinstance(v, Mapping)] if isinstance(versions, list) else []


def _identity(crd: Obj, spec: Obj) -> Iterator[Cause]:
    group, scope = spec.get("group"), spec.get("scope")
    names = spec.get("names")
    if not isinstance(group, str) or not group:
        yield causes.required("spec.group")
    elif not is_subdomain(group):
        yield causes.invalid("spec.group", group, SUBDOMAIN_RULE)
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield causes.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield causes.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    name = (crd.get("metadata") or {}).get("name", "")
    plural = names.get("plural") if isinstance(names, Mapping) else ""
    if name != f"{plural}.{group}":
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _names(spec: Obj) -> Iterator[Cause]:
    names = spec.get("names")
    if not isinstance(names, Mapping):
        yield causes.required("spec.names")
        return
    for key in ("plural", "kind"):
        if not names.get(key):
            yield causes.required(f"spec.names.{key}")
    for key in ("plural", "singular", "kind", "listKind"):
        name, mixed = str(names.get(key) or ""), key in ("kind", "listKind")
        if name and not is_label(name.lower() if mixed else name):
            detail = f"may have mixed case, but should otherwise match: {LABEL_RULE}" if mixed else LABEL_RULE
            yield causes.invalid(f"spec.names.{key}", name, detail)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield causes.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _other_names(names)


def _other_names(names: Obj) -> Iterator[Cause]:
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            if not is_label(str(name)):
                yield causes.invalid(f"spec.names.{key}[{index}]", name, LABEL_RULE)


def _conversion(spec: Obj) -> Iterator[Cause]:
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    if strategy != "None":
        yield causes.not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    if spec.get("preserveUnknownFields") is True:
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield causes.invalid("spec.preserveUnknownFields", True, detail)


def _version_list(spec: Obj) -> Iterator[Cause]:
    versions = _versions(spec)
    if not versions:
        yield causes.required("spec.versions", "must have at least one version")
        return
    seen = set()
    for index, version in enumerate(versions):
        name = str(version.get("name") or "")
        if name in seen:
            yield causes.duplicate(f"spec.versions[{index}].name", name)
        seen.add(name)
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield causes.invalid("spec.versions", [version.get("name") for version in versions], detail)


def _version(version: Obj, path: str) -> Iterator[Cause]:
    name = str(version.get("name") or "")
    if not _VERSION_NAME.fullmatch(name):
        yield causes.invalid(f"{path}.name", name, "must be a DNS label such as v1 or v1alpha1")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, Mapping):
        yield causes.required(f"{path}.schema.openAPIV3Schema")
    else:
        yield from check_schema(schema, f"{path}.schema.openAPIV3Schema")
        for index, field in enumerate(version.get("selectableFields") or ()):
            yield from _selectable(
                str(field.get("jsonPath") or ""), schema, f"{path}.selectableFields[{index}].jsonPath"
            )
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")


def _selectable(text: str, schema: Obj, path: str) -> Iterator[Cause]:
    place: Any = schema
    for name in text.removeprefix(".").split("."):
        place = (place.get("properties") or {}).get(name) if isinstance(place, Mapping) else None
    if not isinstance(place, Mapping):
        yield causes.invalid(path, text, "is an invalid path: does not refer to a valid field")
    elif place.get("type") not in ("string", "boolean", "integer"):
        message = (
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats"
        )
        yield causes.invalid(path, text, f"{message} are allowed.")


def _column(column: Obj, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield causes.required(f"{path}.name")
    kind = column.get("type")
    if not kind:
        yield causes.required(f"{path}.type")
    elif kind not in _COLUMN_TYPES:
        yield causes.invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    text = str(column.get("jsonPath") or "")
    if not text:
        yield causes.required(f"{path}.JSONPath")
    elif not text.startswith("."):
        yield causes.invalid(f"{path}.JSONPath", text, "must be a simple json path starting with .")
    else:
        try:
            compile_path(text)
        except BadPath as error:
            yield causes.invalid(f"{path}.JSONPath", text, str(error))


def _changes(crd: Obj, spec: Obj, old: Obj) -> Iterator[Cause]:
    before = old.get("spec") or {}
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        new_value, old_value = _at(spec, path), _at(before, path)
        if new_value != old_value:
            yield causes.invalid("spec." + ".".join(path), new_value, "field is immutable")
    named = {version.get("name") for version in _versions(spec)}
    for index, name in enumerate((crd.get("status") or {}).get("storedVersions") or ()):
        if name not in named:
            detail = f"missing from spec.versions: objects may still be stored in {name}, so it has to stay"
            yield causes.invalid(f"status.storedVersions[{index}]", name, detail)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
