"""A kind as the API's discovery describes it, for programs that learn of it only when they run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Resource:
    """A kind as discovery describes it; a `Kind` for plain JSON, and with another `struct` for typed objects."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    struct: type[Any] = dict

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full(self) -> str:
        """The name that is certain: plural.group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def answers_to(self, word: str) -> bool:
        """True when this is one of its names: plural, singular, kind or short name, also with the group behind it."""
        names = {self.plural, self.singular, self.kind.lower(), *self.short_names}
        return word in names or any(word == f"{name}.{self.group}" for name in names if self.group)


def split_api_version(api_version: str) -> tuple[str, str]:
    """Group and version of an apiVersion; the group is empty for the core group."""
    group, _, version = api_version.rpartition("/")
    return group, version


def from_list(api_version: str, entries: Iterable[Mapping[str, Any]]) -> tuple[Resource, ...]:
    """The kinds in the `resources` of an APIResourceList (metav1), without subresources."""
    group, version = split_api_version(api_version)
    return tuple(_listed(group, version, entry) for entry in entries if "/" not in entry["name"])


def _listed(group: str, version: str, entry: Mapping[str, Any]) -> Resource:
    kind = str(entry["kind"])
    return Resource(
        group, version, kind, entry["name"], entry.get("singularName") or kind.lower(), bool(entry["namespaced"]),
        tuple(entry.get("shortNames") or ()), tuple(entry.get("categories") or ()), tuple(entry.get("verbs") or ()),
    )  # fmt: skip
