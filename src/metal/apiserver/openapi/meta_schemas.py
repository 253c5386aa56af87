"""Schemas that every OpenAPI document of the API shares: ObjectMeta, list metadata, delete options, Status."""

from typing import Any

Schema = dict[str, Any]

_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{_PREFIX}.ObjectMeta"
LIST_META = f"{_PREFIX}.ListMeta"
OWNER_REFERENCE = f"{_PREFIX}.OwnerReference"
MANAGED_FIELDS = f"{_PREFIX}.ManagedFieldsEntry"
FIELDS_V1 = f"{_PREFIX}.FieldsV1"
DELETE_OPTIONS = f"{_PREFIX}.DeleteOptions"
STATUS = f"{_PREFIX}.Status"
TIME = f"{_PREFIX}.Time"
API_VERSION = "API version of this object: group/version, or the version alone for the core group."
KIND = "Kind of this object, in CamelCase. It cannot be changed."


def ref(name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def described(name: str, description: str) -> Schema:
    """A reference with its own description."""
    return {"allOf": [ref(name)], "description": description, "default": {}}


def text(description: str) -> Schema:
    """A string."""
    return {"type": "string", "description": description}


def _texts(description: str) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string", "default": ""}, "description": description}


def _moment(description: str) -> Schema:
    return {"allOf": [ref(TIME)], "description": description}


def _number(description: str) -> Schema:
    return {"type": "integer", "format": "int64", "description": description}


_FIELDS: Schema = {
    "name": text("Name, unique among objects of one kind in a namespace. Required on creation and immutable."),
    "generateName": text("Prefix of a name that the server generates when no name is given."),
    "namespace": text("Namespace in which the name is unique; empty for cluster-scoped kinds."),
    "uid": text("Unique identity of this object, set by the server; a later object of the same name has another."),
    "resourceVersion": text("Opaque version of this object. An update with an older version is refused as a conflict."),
    "generation": _number("Sequence number of the desired state (spec), set by the server."),
    "creationTimestamp": _moment("Time when the object was created, set by the server."),
    "deletionTimestamp": _moment(
        "Time when deletion was requested. The object is removed when its finalizers are gone."
    ),
    "deletionGracePeriodSeconds": _number("Seconds for graceful termination before the object is removed."),
    "selfLink": text("Deprecated."),
    "labels": _texts("Keys and values that organize and select objects."),
    "annotations": _texts("Keys and values for tools and controllers; selectors do not match them."),
    "finalizers": {
        "type": "array",
        "items": {"type": "string", "default": ""},
        "description": "Cleanup that must finish before the object is removed. Each owner removes its own entry.",
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    },
    "ownerReferences": {
        "type": "array",
        "items": {"allOf": [ref(OWNER_REFERENCE)], "default": {}},
        "description": "Objects that this object depends on. When all of them are deleted, it is garbage collected.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
        "x-kubernetes-patch-merge-key": "uid",
        "x-kubernetes-patch-strategy": "merge",
    },
    "managedFields": {
        "type": "array",
        "items": {"allOf": [ref(MANAGED_FIELDS)], "default": {}},
        "description": "Managers and the fields that they own, maintained by the server for server-side apply.",
        "x-kubernetes-list-type": "atomic",
    },
}

_OWNER: Schema = {
    "apiVersion": text("API version of the owner."),
    "kind": text("Kind of the owner."),
    "name": text("Name of the owner, in the same namespace or cluster-scoped."),
    "uid": text("Identity of the owner."),
    "controller": {
        "type": "boolean",
        "description": "Whether this owner is the managing controller. At most one owner is.",
    },
    "blockOwnerDeletion": {
        "type": "boolean",
        "description": "Whether foreground deletion of the owner waits for this object.",
    },
}

_MANAGED: Schema = {
    "manager": text("Name of the field manager."),
    "operation": text("Apply or Update."),
    "apiVersion": text("API version of the fields."),
    "fieldsType": text("Always FieldsV1."),
    "fieldsV1": described(FIELDS_V1, "The fields as a tree."),
    "subresource": text("Subresource through which the fields were written, if any."),
    "time": _moment("Time of the last change by the manager."),
}

_DELETE: Schema = {
    "apiVersion": text(API_VERSION),
    "kind": text(KIND),
    "dryRun": {
        "type": "array",
        "items": {"type": "string", "default": ""},
        "description": "All: validate the request and change nothing.",
    },
    "gracePeriodSeconds": _number("Seconds to wait before the object is removed."),
    "orphanDependents": {"type": "boolean", "description": "Deprecated: use propagationPolicy."},
    "preconditions": {
        "type": "object",
        "description": "Preconditions of the deletion.",
        "properties": {"uid": text("Required uid."), "resourceVersion": text("Required resourceVersion.")},
    },
    "propagationPolicy": text("Garbage collection of dependents: Orphan, Background or Foreground."),
}

_STATUS: Schema = {
    "apiVersion": text(API_VERSION),
    "kind": text(KIND),
    "metadata": described(LIST_META, "Metadata of the response."),
    "status": text("Success or Failure."),
    "message": text("Human-readable description."),
    "reason": text("Machine-readable reason in CamelCase."),
    "details": {
        "type": "object",
        "description": "Details of the reason.",
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "code": {"type": "integer", "format": "int32", "description": "HTTP status code."},
}


def _object(description: str, properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    out: Schema = {"type": "object", "description": description, "properties": properties}
    return {**out, "required": list(required)} if required else out


COMPONENTS: Schema = {
    OBJECT_META: _object("ObjectMeta is the metadata that every stored object has.", _FIELDS),
    OWNER_REFERENCE: {
        **_object("OwnerReference identifies an owner.", _OWNER, ("apiVersion", "kind", "name", "uid")),
        "x-kubernetes-map-type": "atomic",
    },
    MANAGED_FIELDS: _object("ManagedFieldsEntry is the set of fields that one manager owns.", _MANAGED),
    FIELDS_V1: {"type": "object", "description": "FieldsV1 is a set of fields as a tree."},
    LIST_META: _object(
        "ListMeta describes a list or one page of it.",
        {
            "continue": text("Continue token for the next page; empty on the last page."),
            "remainingItemCount": _number("Number of objects after this page."),
            "resourceVersion": text("Version of the collection, from which a watch can start."),
            "selfLink": text("Deprecated."),
        },
    ),
    DELETE_OPTIONS: _object("DeleteOptions are the options of a deletion.", _DELETE),
    STATUS: _object("Status is the result of a request that does not return an object.", _STATUS),
    TIME: {"type": "string", "format": "date-time", "description": "A time in RFC 3339."},
}
"""Schemas by component name."""
