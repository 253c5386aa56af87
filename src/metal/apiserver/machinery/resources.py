"""Which resources are served: built-ins from the start, custom ones as CRDs come and go."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.records import ResourceKey
from metal.apiserver.machinery.status import Who
from metal.apiserver.machinery.structural import Node
from metal.apiserver.printing.table import Column

if TYPE_CHECKING:
    from metal.apiserver.machinery.requests import RequestContext

Obj = dict[str, Any]


class Schema(Protocol):
    """What a resource needs of its structural schema (`schema.Compiled`)."""

    @property
    def root(self) -> Node: ...
    def prune(self, obj: Mapping[str, Any]) -> Obj: ...
    def default(self, obj: Mapping[str, Any], *, applied: bool = False) -> Obj: ...
    def validate(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Cause]: ...
    def unknown_fields(self, obj: Mapping[str, Any]) -> list[str]: ...


def _leave(obj: Obj, old: Obj | None) -> None:
    """Changes nothing."""


def _accept(obj: Obj, old: Obj | None) -> list[Cause]:
    return []


def _free(obj: Obj) -> bool:
    return False


def _unmoved(obj: Obj) -> None:
    """Changes nothing."""


def _same(obj: Obj) -> Obj:
    return obj


def _admit(ctx: "RequestContext", obj: Obj, old: Obj | None) -> None:
    """Lets everybody."""


@dataclass(frozen=True)
class Strategy:
    """Where a resource differs from a plain custom resource.

    prepare: adjusts an object before it is validated; old is None on create.
    check: rules beyond the schema.
    admit: raises StatusError when this user may not write this object; it is asked before `check`.
    held: whether a deleted object without finalizers must stay all the same.
    deleted: adjusts an object whose deletion begins.
    unconditional: an update without resourceVersion overwrites.
    generations: metadata.generation is kept; finalizers: added to every new object.
    review: answers a create without storing anything (access reviews).
    unowned: top-level fields that the server alone writes, so that managedFields do not name them.
    selectable: fields that field selectors may name, beside metadata.name and metadata.namespace.
    selected: a stored object as field selectors see it.
    blank: what an object says before anything is written in it: empty structs and times of kinds that Go types hold.
    path_names: names are anything that fits into a path, such as `system:discovery`.
    """

    prepare: Callable[[Obj, Obj | None], None] = _leave
    check: Callable[[Obj, Obj | None], list[Cause]] = _accept
    admit: "Callable[[RequestContext, Obj, Obj | None], None]" = _admit
    held: Callable[[Obj], bool] = _free
    deleted: Callable[[Obj], None] = _unmoved
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
    """What whoever uses this version is warned of."""
    actions: "Mapping[str, Resource]" = field(default_factory=dict, repr=False)
    """Subresources that answer a create and store nothing, by name: the token of a ServiceAccount."""
    shares: "Resource | None" = field(default=None, repr=False)
    """The resource whose objects this one shows in another form; `show` and `keep` convert from and to it."""
    show: Callable[[Obj], Obj] | None = field(default=None, repr=False)
    keep: Callable[[Obj], Obj] | None = field(default=None, repr=False)

    @property
    def key(self) -> ResourceKey:
        """The collection behind every version of this resource."""
        return self.shares.key if self.shares else ResourceKey(self.group, self.plural)

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_api_version(self) -> str:
        """apiVersion that objects carry in the store."""
        if self.shares:
            return self.shares.storage_api_version
        version = self.stored_as or self.version
        return f"{self.group}/{version}" if self.group else version

    def who(self, name: str = "") -> Who:
        """How a Status names an object of this resource."""
        return self.shares.who(name) if self.shares else Who(self.group, self.plural, self.kind, name)


_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes does: v10, v2, v1, v1beta2, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)


class Registry:
    """Every resource that is served right now."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0
        """Grows with every change, so that caches of discovery documents know when they are stale."""

    def add(self, resource: Resource) -> None:
        """Serve a resource, in place of what had its name and version."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, key: ResourceKey) -> None:
        """Stop serving every version of a custom collection; what is built in stays."""
        for path in [path for path, resource in self._resources.items() if resource.key == key and resource.custom]:
            del self._resources[path]
        self.generation += 1

    def owns(self, group: str) -> bool:
        """Whether a group is the API's own: no CRD adds to it, or takes the place of what guards itself in it."""
        return any(resource.group == group and not resource.custom for resource in self._resources.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a path, or None."""
        return self._resources.get((group, version, plural))

    def kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind, or None when that is not served."""
        return next((r for r in self if r.kind == kind and r.api_version == api_version), None)

    def any_version(self, key: ResourceKey) -> Resource | None:
        """Some version of a collection, the storage version first, or None when none is served."""
        served = [resource for resource in self if resource.key == key]
        return min(served, key=lambda resource: resource.version != resource.stored_as, default=None)

    def group_versions(self) -> dict[str, list[str]]:
        """Served versions of each group, the best known first."""
        found: dict[str, list[str]] = {}
        for resource in self:
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return {group: sorted(versions, key=version_order) for group, versions in found.items()}

    def of(self, group: str, version: str) -> list[Resource]:
        """Resources of one group and version, by name."""
        found = [r for r in self if (r.group, r.version) == (group, version)]
        return sorted(found, key=lambda resource: resource.plural)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))
