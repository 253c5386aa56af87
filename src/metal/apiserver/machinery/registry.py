"""Which resources are served: built-in ones from the start, custom ones while their CRD exists."""

import re
from collections.abc import Iterator

from metal.apiserver.machinery.records import ResourceKey
from metal.apiserver.machinery.resources import Resource

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
        """Grows with every change, which invalidates cached discovery documents."""

    def add(self, resource: Resource) -> None:
        """Serve a resource; it replaces the one with the same group, version and name."""
        self._resources[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, key: ResourceKey) -> None:
        """Stop serving every version of a custom resource; built-in resources stay."""
        for path in [path for path, resource in self._resources.items() if resource.key == key and resource.custom]:
            del self._resources[path]
        self.generation += 1

    def owns(self, group: str) -> bool:
        """Whether a group is built in: CRDs can neither add resources to it nor replace its own."""
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
        """Served versions of each group, the preferred one first."""
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
