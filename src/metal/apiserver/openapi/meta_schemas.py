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
API_VERSION = (
    "Version of the schema that this object is written in, as group/version, or only the version for the core group."
)
KIND = "Kind of resource that this object is, in CamelCase. It cannot be changed."


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
    "name": text("Name, unique among objects of one kind in a namespace. Needed on creation, fixed afterwards."),
    "generateName": text("Start of a name that the server completes, used when no name is given."),
    "namespace": text("Namespace in which the name is unique; empty for kinds that belong to the whole cluster."),
    "uid": text(
        "Identity of this object in time and space, given by the server: a later object of this name has another."
    ),
    "resourceVersion": text(
        "Opaque mark of this state of the object. Sent back with a change, it refuses to overwrite others' changes."
    ),
    "generation": _number("Counts changes of what is wanted (spec). Given by the server."),
    "creationTimestamp": _moment("When the server stored the object for the first time."),
    "deletionTimestamp": _moment("When deletion was asked for. The object goes once its finalizers are gone."),
    "deletionGracePeriodSeconds": _number("Seconds that the object may take to end by itself before it is removed."),
    "selfLink": text("No longer used."),
    "labels": _texts("Keys and values to sort and select objects by."),
    "annotations": _texts("Keys and values for programs; nothing selects by them."),
    "finalizers": {
        "type": "array",
        "items": {"type": "string", "default": ""},
        "description": "Who still has to clean up before the object may go. Each removes its own entry.",
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    },
    "ownerReferences": {
        "type": "array",
        "items": {"allOf": [ref(OWNER_REFERENCE)], "default": {}},
        "description": "Objects that this one depends on: when all of them are gone, it is deleted too.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
        "x-kubernetes-patch-merge-key": "uid",
        "x-kubernetes-patch-strategy": "merge",
    },
    "managedFields": {
        "type": "array",
        "items": {"allOf": [ref(MANAGED_FIELDS)], "default": {}},
        "description": "Which manager wrote which fields, kept by the server for server-side apply.",
        "x-kubernetes-list-type": "atomic",
    },
}

_OWNER: Schema = {
    "apiVersion": text("API version of the owner."),
    "kind": text("Kind of the owner."),
    "name": text("Name of the owner, in the same namespace or in none."),
    "uid": text("Identity of the owner."),
    "controller": {"type": "boolean", "description": "Whether this owner manages the object. At most one does."},
    "blockOwnerDeletion": {
        "type": "boolean",
        "description": "Whether the owner waits for this object when it is deleted in the foreground.",
    },
}

_MANAGED: Schema = {
    "manager": text("Program that wrote the fields."),
    "operation": text("Apply or Update."),
    "apiVersion": text("Version in which the fields were written."),
    "fieldsType": text("Always FieldsV1."),
    "fieldsV1": described(FIELDS_V1, "The fields as a tree."),
    "subresource": text("Subresource through which they were written, if any."),
    "time": _moment("When the manager last changed something."),
}

_DELETE: Schema = {
    "apiVersion": text(API_VERSION),
    "kind": text(KIND),
    "dryRun": {"type": "array", "items": {"type": "string", "default": ""}, "description": "All: change nothing."},
    "gracePeriodSeconds": _number("Seconds to wait before the object is removed."),
    "orphanDependents": {"type": "boolean", "description": "No longer used: see propagationPolicy."},
    "preconditions": {
        "type": "object",
        "description": "What has to hold, or nothing is deleted.",
        "properties": {"uid": text("Identity."), "resourceVersion": text("State.")},
    },
    "propagationPolicy": text("What becomes of dependents: Orphan, Background or Foreground."),
}

_STATUS: Schema = {
    "apiVersion": text(API_VERSION),
    "kind": text(KIND),
    "metadata": described(LIST_META, "Metadata of the answer."),
    "status": text("Success or Failure."),
    "message": text("What happened, for people."),
    "reason": text("What happened, in one CamelCase word."),
    "details": {
        "type": "object",
        "description": "More about the reason.",
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "code": {"type": "integer", "format": "int32", "description": "HTTP status."},
}


def _object(description: str, properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    out: Schema = {"type": "object", "description": description, "properties": properties}
    return {**out, "required": list(required)} if required else out


COMPONENTS: Schema = {
    OBJECT_META: _object("ObjectMeta is what every stored object has: names, times, labels, owners.", _FIELDS),
    OWNER_REFERENCE: {
        **_object("OwnerReference names an owner.", _OWNER, ("apiVersion", "kind", "name", "uid")),
        "x-kubernetes-map-type": "atomic",
    },
    MANAGED_FIELDS: _object("ManagedFieldsEntry says which fields one manager wrote.", _MANAGED),
    FIELDS_V1: {"type": "object", "description": "FieldsV1 is a set of fields as a tree."},
    LIST_META: _object(
        "ListMeta describes a list or one page of it.",
        {
            "continue": text("Asks for the next page when sent back; empty on the last one."),
            "remainingItemCount": _number("How many objects are not in this page."),
            "resourceVersion": text("State of the collection, from which a watch can go on."),
            "selfLink": text("No longer used."),
        },
    ),
    DELETE_OPTIONS: _object("DeleteOptions says how to delete.", _DELETE),
    STATUS: _object("Status is an answer that is no object.", _STATUS),
    TIME: {"type": "string", "format": "date-time", "description": "A moment in RFC 3339."},
}
"""Schemas by component name."""
