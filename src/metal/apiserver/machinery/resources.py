"""A served resource, the strategy by which it differs from others, and the context of a request about it.

The three types refer to one another: a request names a resource, and a strategy decides about a request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.columns import Column
from metal.apiserver.machinery.options import WriteOptions
from metal.apiserver.machinery.records import ObjectKey, ResourceKey
from metal.apiserver.machinery.status import Who
from metal.apiserver.machinery.structural import Node
from metal.apiserver.machinery.users import User

Obj = dict[str, Any]


class Schema(Protocol):
    """The operations of a structural schema that a resource uses (`schema.Compiled`)."""

    @property
    def root(self) -> Node: ...
    def prune(self, obj: Mapping[str, Any]) -> Obj: ...
    def default(self, obj: Mapping[str, Any], *, applied: bool = False) -> Obj: ...
    def validate(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Cause]: ...
    def unknown_fields(self, obj: Mapping[str, Any]) -> list[str]: ...


def _prepare_nothing(obj: Obj, old: Obj | None) -> None:
    """Changes nothing."""


def _accept(obj: Obj, old: Obj | None) -> list[Cause]:
    return []


def _free(obj: Obj) -> bool:
    return False


def _after_delete_nothing(obj: Obj) -> None:
    """Changes nothing."""


def _same(obj: Obj) -> Obj:
    return obj


def _admit(ctx: "RequestContext", obj: Obj, old: Obj | None) -> None:
    """Admits every write."""


@dataclass(frozen=True)
class Strategy:
    """The behaviour in which a resource differs from a plain custom resource.

    prepare: adjusts an object before it is validated; old is None on create.
    check: rules beyond the schema.
    admit: raises StatusError when this user may not write this object; called before `check`.
    held: whether a deleted object without finalizers must remain.
    deleted: adjusts an object when its deletion begins.
    unconditional: an update without resourceVersion overwrites.
    generations: metadata.generation is kept; finalizers: added to every new object.
    review: answers a create without storing anything (access reviews).
    unowned: top-level fields that only the server writes; managedFields do not contain them.
    selectable: fields that field selectors may name, beside metadata.name and metadata.namespace.
    selected: a stored object as field selectors see it.
    blank: content of an object before the first write: empty structs and times that Go types always encode.
    path_names: any path segment is a valid name, such as `system:discovery`.
    """

    prepare: Callable[[Obj, Obj | None], None] = _prepare_nothing
    check: Callable[[Obj, Obj | None], list[Cause]] = _accept
    admit: "Callable[[RequestContext, Obj, Obj | None], None]" = _admit
    held: Callable[[Obj], bool] = _free
    deleted: Callable[[Obj], None] = _after_delete_nothing
    review: "Callable[[RequestContext, Obj], Obj] | None" = None
    unconditional: bool = False
    generations: bool = True
    finalizers: tuple[str, ...] = ()
    unowned: frozenset[str] = frozenset()
    selectable: frozenset[str] = frozenset()
    path_names: bool = False
    blank: Mapping[str, Any] = field(default_factory=dict)
    selected: Callable[[Obj], Obj] = _same


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    schema: Schema
    openapi: Mapping[str, Any] = field(repr=False)
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = field(default=(), repr=False)
    status: bool = False
    stored_as: str = ""
    custom: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    strategy: Strategy = Strategy()
    deprecated: str = ""
    """Warning that clients of this version receive."""
    actions: "Mapping[str, Resource]" = field(default_factory=dict, repr=False)
    """Subresources by name that accept create and store nothing, such as the token of a ServiceAccount."""
    shares: "Resource | None" = field(default=None, repr=False)
    """The resource whose objects this one presents in another form; `show` and `keep` convert from and to it."""
    show: Callable[[Obj], Obj] | None = field(default=None, repr=False)
    keep: Callable[[Obj], Obj] | None = field(default=None, repr=False)

    @property
    def key(self) -> ResourceKey:
        """The collection that all versions of this resource share."""
        return self.shares.key if self.shares else ResourceKey(self.group, self.plural)

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_api_version(self) -> str:
        """apiVersion of objects in the store."""
        if self.shares:
            return self.shares.storage_api_version
        version = self.stored_as or self.version
        return f"{self.group}/{version}" if self.group else version

    def who(self, name: str = "") -> Who:
        """How a Status names an object of this resource."""
        return self.shares.who(name) if self.shares else Who(self.group, self.plural, self.kind, name)


@dataclass(frozen=True)
class RequestContext:
    """One request: user, resource, object and options. `warnings` collects the warnings of the response.

    duplicates: one message for each field that the body contains more than once.
    """

    user: User
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: WriteOptions = field(default_factory=WriteOptions)
    warnings: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)

    @property
    def key(self) -> ObjectKey:
        """The key of the object in the store."""
        return ObjectKey(self.resource.key, self.namespace, self.name)

    @property
    def who(self) -> Who:
        """How a Status names the object."""
        return self.resource.who(self.name)
