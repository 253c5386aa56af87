"""Validates objects against the generated CRDs with an independent JSON Schema validator."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from metal.api.kinds import kinds
from tests.crds import crds

SAMPLES = Path(__file__).parents[2] / "config" / "samples"


def documents(path: Path) -> list[dict[str, Any]]:
    """Return the YAML documents of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def schema_of(group: str, kind: str) -> dict[str, Any]:
    """Return the CRD schema of a kind as plain JSON Schema."""
    for crd in crds(kinds(group)):
        if crd["spec"]["names"]["kind"] == kind:
            schema: dict[str, Any] = plain(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
            return schema
    raise LookupError(kind)


def plain(schema: Any) -> Any:
    """Translate `nullable` to a type, and reject unknown fields as strict validation does."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: value if key in {"default", "enum"} else plain(value) for key, value in schema.items()}
    if result.pop("nullable", False):
        result["type"] = [result["type"], "null"]
    if "properties" in result and isinstance(result.get("type"), str):
        result["additionalProperties"] = False
    return result


def problems(obj: dict[str, Any], group: str = "metal.ironcore.dev") -> list[str]:
    """Return the violations of the schema by an object."""
    checked = {**obj, "metadata": {}}
    schema = schema_of(group, obj["kind"])
    schema["properties"]["metadata"] = {"type": "object"}
    validator = jsonschema_rs.Draft4Validator(schema, validate_formats=True)
    return [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(checked)]
