"""The minimum of OpenAPI v2 that kubectl up to 1.28 needs: PATCH supports dryRun and fieldValidation.

kubectl reads it in protobuf only (gnostic, openapiv2/OpenAPIv2.proto); schemas are in OpenAPI v3 only.
"""

import json
from collections.abc import Iterable

from metal.apiserver.machinery.resources import Resource

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
CONTENT_TYPE = MEDIA_TYPE.replace("@", ".")
"""Content type of the response: Go's parser refuses @ in it."""
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def document(resources: Iterable[Resource]) -> bytes:
    """openapi.v2.Document with a PATCH for every resource that has one."""
    info = _text(1, "Kubernetes") + _text(2, "v1.35.4")
    patchable = (resource for resource in resources if "patch" in resource.verbs)
    paths = b"".join(_field(2, _text(1, _path(r)) + _field(2, _field(8, _patch(r)))) for r in patchable)
    return _text(1, "2.0") + _field(2, info) + _field(8, paths)


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/{'namespaces/{namespace}/' if resource.namespaced else ''}{resource.plural}/{{name}}"


def _patch(resource: Resource) -> bytes:
    """Operation: its query parameters, and the kind it is for as a vendor extension."""
    parameters = b"".join(_field(8, _field(1, _field(2, _field(3, _query(name))))) for name in _PARAMETERS)
    kind = json.dumps({"group": resource.group, "kind": resource.kind, "version": resource.version})
    extension = _text(1, "x-kubernetes-group-version-kind") + _field(2, _text(2, kind))
    return parameters + _field(13, extension)


def _query(name: str) -> bytes:
    return _text(2, "query") + _text(4, name) + _text(6, "string")
