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
    "One observed aspect.",
    {
        "type": _text("Name of the aspect."),
        "status": _text("True, False or Unknown."),
        "lastTransitionTime": _time("When status last changed."),
        "reason": _text("CamelCase word for programs."),
        "message": _text("Sentence for people."),
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
            "Wanted state.",
            {"finalizers": {"type": "array", "items": {"type": "string"}, "description": "Who must let go."}},
        ),
        "status": _object("Observed state.", {"phase": _text("Active or Terminating."), "conditions": _CONDITIONS}),
    },
)

SECRET = _object(
    "Secret holds bytes that are not for everyone, at most 1 MiB.",
    {
        # No format: a refusal by the schema would repeat the value; the strategy checks it without doing so.
        "data": _texts("Values in base64.", nullable=True),
        "stringData": _texts("Values in plain text; folded into data when written, never read back."),
        "type": _text("What the data is for; programs rely on it.", default="Opaque"),
        "immutable": {"type": "boolean", "description": "When true, data may not change."},
    },
)

CONFIGMAP = _object(
    "ConfigMap holds configuration.",
    {
        "data": _texts("Values in UTF-8."),
        "binaryData": _texts("Values in base64.", nullable=True),
        "immutable": {"type": "boolean", "description": "When true, data may not change."},
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
    "Event tells people what happened to an object.",
    {
        "involvedObject": _REFERENCE,
        "reason": _text("CamelCase word for programs."),
        "message": _text("Sentence for people."),
        "source": _object("Who saw it.", {"component": _text("Program."), "host": _text("Machine.")}),
        "firstTimestamp": _time("When it was first seen."),
        "lastTimestamp": _time("When it was last seen."),
        "count": {"type": "integer", "format": "int32", "description": "How often it was seen."},
        "type": _text("Normal or Warning."),
        "eventTime": _time("When it was first seen, with microseconds."),
        "series": {
            "type": "object",
            "nullable": True,
            "description": "Repetitions.",
            "properties": {
                "count": {"type": "integer", "format": "int32"},
                "lastObservedTime": _time("When it was last seen."),
            },
        },
        "action": _text("What was done."),
        "related": {**_REFERENCE, "nullable": True},
        "reportingComponent": _text("Controller that reports."),
        "reportingInstance": _text("Instance of the controller."),
    },
)

SERVICE_ACCOUNT = _object(
    "ServiceAccount is an identity for programs.",
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
    "Lease is held by one program at a time.",
    {
        "spec": _object(
            "Who holds it.",
            {
                "holderIdentity": _text("Who holds it."),
                "leaseDurationSeconds": {
                    "type": "integer",
                    "format": "int32",
                    "description": "Seconds it is good for.",
                },
                "acquireTime": _time("When it was taken."),
                "renewTime": _time("When it was last renewed."),
                "leaseTransitions": {
                    "type": "integer",
                    "format": "int32",
                    "description": "How often it changed hands.",
                },
                "strategy": _text("How a leader is chosen."),
                "preferredHolder": _text("Who should have it."),
            },
        )
    },
)

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAMES = _object(
    "What the resource is called.",
    {
        "plural": _text("Name in paths."),
        "singular": _text("Name for one."),
        "kind": _text("Name in manifests."),
        "listKind": _text("Kind of a list."),
        "shortNames": {"type": "array", "items": {"type": "string"}},
        "categories": {"type": "array", "items": {"type": "string"}},
    },
)
_CRD_VERSION = _object(
    "One version of the resource.",
    {
        "name": _text("Such as v1alpha1."),
        "served": {"type": "boolean", "description": "Whether it can be used."},
        "storage": {"type": "boolean", "description": "Whether objects are stored in it; true for exactly one."},
        "deprecated": {"type": "boolean"},
        "deprecationWarning": _text("Warning given to its users."),
        "schema": _object("What its objects look like.", {"openAPIV3Schema": _OPEN}),
        "subresources": _object("Parts with endpoints of their own.", {"status": _OPEN, "scale": _OPEN}),
        "additionalPrinterColumns": {"type": "array", "items": _OPEN, "description": "Columns of kubectl get."},
        "selectableFields": {"type": "array", "items": _OPEN, "description": "Fields that selectors may name."},
    },
    ("name", "served", "storage"),
)

CRD = _object(
    "CustomResourceDefinition adds a resource to the API.",
    {
        "spec": _object(
            "The resource.",
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
            "What is served.",
            {
                "acceptedNames": _NAMES,
                "storedVersions": {"type": "array", "items": {"type": "string"}},
                "conditions": _CONDITIONS,
            },
        ),
    },
    ("spec",),
)
