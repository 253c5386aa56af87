"""Schemas of the built-in kinds that are served."""

from typing import Any

Schema = dict[str, Any]


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _texts(description: str, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string", **more}, "description": description}


def _time(description: str) -> Schema:
    # MicroTime and Time are both RFC 3339; a missing time is written as null by Go clients.
    return {"type": "string", "format": "date-time", "nullable": True, "description": description}


def _object(description: str, properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    found: Schema = {"type": "object", "description": description, "properties": properties}
    if required:
        found["required"] = list(required)
    return found


_CONDITION = _object(
    "Condition is one observed aspect of an object.",
    {
        "type": _text("Type of the condition."),
        "status": _text("True, False or Unknown."),
        "lastTransitionTime": _time("Time of the last change of status."),
        "reason": _text("Machine-readable reason in CamelCase."),
        "message": _text("Human-readable description."),
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
    ("type", "status"),
)
_CONDITIONS = {
    "type": "array",
    "items": _CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}

NAMESPACE = _object(
    "Namespace is a scope for names.",
    {
        "spec": _object(
            "Desired state.",
            {
                "finalizers": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Finalizers that must be removed before the namespace is deleted.",
                }
            },
        ),
        "status": _object("Observed state.", {"phase": _text("Active or Terminating."), "conditions": _CONDITIONS}),
    },
)

SECRET = _object(
    "Secret holds confidential data, at most 1 MiB.",
    {
        # No format: a refusal by the schema would repeat the value; the strategy checks it without doing so.
        "data": _texts("Values in base64.", nullable=True),
        "stringData": _texts("Values in plain text; merged into data on write, never returned."),
        "type": _text("Type of the data, which defines the required keys.", default="Opaque"),
        "immutable": {"type": "boolean", "description": "When true, data is immutable."},
    },
)

CONFIGMAP = _object(
    "ConfigMap holds configuration data.",
    {
        "data": _texts("Values in UTF-8."),
        "binaryData": _texts("Values in base64.", nullable=True),
        "immutable": {"type": "boolean", "description": "When true, data is immutable."},
    },
)

_REFERENCE = {
    **_object(
        "Another object.",
        {
            name: _text(f"{name} of the object.")
            for name in ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath")
        },
    ),
    "x-kubernetes-map-type": "atomic",
}

EVENT = _object(
    "Event reports something that happened to an object.",
    {
        "involvedObject": _REFERENCE,
        "reason": _text("Machine-readable reason in CamelCase."),
        "message": _text("Human-readable description."),
        "source": _object("Reporting component.", {"component": _text("Component."), "host": _text("Host.")}),
        "firstTimestamp": _time("Time of the first occurrence."),
        "lastTimestamp": _time("Time of the last occurrence."),
        "count": {"type": "integer", "format": "int32", "description": "Number of occurrences."},
        "type": _text("Normal or Warning."),
        "eventTime": _time("Time of the first occurrence, with microseconds."),
        "series": {
            "type": "object",
            "nullable": True,
            "description": "Repetitions.",
            "properties": {
                "count": {"type": "integer", "format": "int32"},
                "lastObservedTime": _time("Time of the last occurrence."),
            },
        },
        "action": _text("Action that was taken."),
        "related": {**_REFERENCE, "nullable": True},
        "reportingComponent": _text("Reporting controller."),
        "reportingInstance": _text("Instance of the reporting controller."),
    },
)

SERVICE_ACCOUNT = _object(
    "ServiceAccount is an identity for processes.",
    {
        "secrets": {
            "type": "array",
            "items": _REFERENCE,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "imagePullSecrets": {"type": "array", "items": _object("A Secret.", {"name": _text("Its name.")})},
        "automountServiceAccountToken": {"type": "boolean"},
    },
)

LEASE = _object(
    "Lease is held by one process at a time.",
    {
        "spec": _object(
            "Holder and duration of the lease.",
            {
                "holderIdentity": _text("Identity of the holder."),
                "leaseDurationSeconds": {
                    "type": "integer",
                    "format": "int32",
                    "description": "Seconds that the lease is valid after renewTime.",
                },
                "acquireTime": _time("Time when the lease was acquired."),
                "renewTime": _time("Time of the last renewal."),
                "leaseTransitions": {
                    "type": "integer",
                    "format": "int32",
                    "description": "Number of changes of the holder.",
                },
                "strategy": _text("Strategy of coordinated leader election."),
                "preferredHolder": _text("Identity of the preferred holder."),
            },
        )
    },
)

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAMES = _object(
    "Names of the resource.",
    {
        "plural": _text("Plural name, used in URLs."),
        "singular": _text("Singular name."),
        "kind": _text("Kind, used in manifests."),
        "listKind": _text("Kind of lists."),
        "shortNames": {"type": "array", "items": {"type": "string"}},
        "categories": {"type": "array", "items": {"type": "string"}},
    },
)
_CRD_VERSION = _object(
    "One version of the resource.",
    {
        "name": _text("Name of the version, such as v1alpha1."),
        "served": {"type": "boolean", "description": "Whether the version is served."},
        "storage": {
            "type": "boolean",
            "description": "Whether objects are stored in this version; true for exactly one.",
        },
        "deprecated": {"type": "boolean"},
        "deprecationWarning": _text("Warning for clients of this version."),
        "schema": _object("Schema of the objects.", {"openAPIV3Schema": _OPEN}),
        "subresources": _object("Subresources with their own endpoints.", {"status": _OPEN, "scale": _OPEN}),
        "additionalPrinterColumns": {"type": "array", "items": _OPEN, "description": "Columns of kubectl get."},
        "selectableFields": {"type": "array", "items": _OPEN, "description": "Fields that selectors may name."},
    },
    ("name", "served", "storage"),
)

CRD = _object(
    "CustomResourceDefinition adds a resource to the API.",
    {
        "spec": _object(
            "The defined resource.",
            {
                "group": _text("API group."),
                "names": _NAMES,
                "scope": _text("Namespaced or Cluster."),
                "versions": {"type": "array", "items": _CRD_VERSION},
                "conversion": _OPEN,
                "preserveUnknownFields": {"type": "boolean"},
            },
            ("group", "names", "scope", "versions"),
        ),
        "status": _object(
            "Observed state of the definition.",
            {
                "acceptedNames": _NAMES,
                "storedVersions": {"type": "array", "items": {"type": "string"}},
                "conditions": _CONDITIONS,
            },
        ),
    },
    ("spec",),
)
