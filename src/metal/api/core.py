"""The fields of Kubernetes' built-in kinds that this project reads and writes."""

from datetime import datetime

import msgspec

from metal.api.meta import Kind, Model, ObjectMeta


class Namespace(Model, frozen=True, kw_only=True):
    """core/v1 Namespace."""

    metadata: ObjectMeta = ObjectMeta()


class Secret(Model, frozen=True, kw_only=True):
    """core/v1 Secret. Its repr shows the keys and never the values."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, bytes] = {}
    type: str = ""
    immutable: bool = False

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, keys={sorted(self.data)})"


class ConfigMap(Model, frozen=True, kw_only=True):
    """core/v1 ConfigMap."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class InvolvedObject(Model, frozen=True, kw_only=True):
    """The object that an Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(Model, frozen=True, kw_only=True):
    """core/v1 Event."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None


class LeaseSpec(Model, frozen=True, kw_only=True):
    """Holder of a Lease, its duration after the last renewal, and the number of times that the holder changed."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int = 0


class Lease(Model, frozen=True, kw_only=True):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class CustomResourceDefinition(Model, frozen=True, kw_only=True):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


NAMESPACE = Kind("", "v1", "Namespace", "namespaces", Namespace, namespaced=False)
SECRET = Kind("", "v1", "Secret", "secrets", Secret)
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", ConfigMap)
EVENT = Kind("", "v1", "Event", "events", Event)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", Lease)
CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
    CustomResourceDefinition, namespaced=False,
)  # fmt: skip
