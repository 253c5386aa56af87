"""PolicyRules (rbac.authorization.k8s.io): what a rule allows, and whether rules cover other rules."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from metal.apiserver.auth.access import Attributes, quoted


class Rule(NamedTuple):
    """One PolicyRule."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def read(cls, obj: Mapping[str, Any]) -> "Rule":
        """A rule from JSON."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(obj.get(name) or ()) for name in fields))

    def allows(self, asked: Attributes) -> bool:
        """Whether this rule allows the access."""
        if not _within(asked.verb, self.verbs):
            return False
        if asked.path:
            return any(_path_covers(path, asked.path) for path in self.paths)
        return (
            _within(asked.group, self.groups)
            and _resource_within(asked.combined, asked.subresource, self.resources)
            and (not self.names or asked.name in self.names)
        )

    def covers(self, single: "Rule") -> bool:
        """Whether it allows everything that a rule of one verb and one resource (or path) allows."""
        if not _within(single.verbs[0], self.verbs):
            return False
        if single.paths:
            return any(_path_covers(path, single.paths[0]) for path in self.paths)
        resource = single.resources[0]
        if not _within(single.groups[0], self.groups):
            return False
        if not _resource_within(resource, resource.partition("/")[2], self.resources):
            return False
        return not self.names or bool(single.names and single.names[0] in self.names)

    def __str__(self) -> str:
        rows = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.paths),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{go_list(values)}" for name, values in rows if values) + "}"


def go_list(values: Iterable[str]) -> str:
    """A list of strings in the form of Go's %q."""
    return "[" + " ".join(quoted(value) for value in values) + "]"


def _within(value: str, allowed: Sequence[str]) -> bool:
    return value in allowed or "*" in allowed


def _resource_within(combined: str, subresource: str, allowed: Sequence[str]) -> bool:
    return _within(combined, allowed) or bool(subresource and f"*/{subresource}" in allowed)


def _path_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def single(rule: Rule) -> list[Rule]:
    """The rule split into rules of one verb, one group, one resource and at most one name."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.names] or [()]
    apart = [
        Rule((verb,), (group,), (resource,), name)
        for group, resource, verb, name in product(rule.groups, rule.resources, rule.verbs, names)
    ]
    return apart + [Rule((verb,), paths=(path,)) for path in rule.paths for verb in rule.verbs]


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The part of the wanted rules that is not covered; verbs of the same resource are combined."""
    resources: dict[Rule, list[str]] = {}
    paths = []
    for rule in wanted:
        for part in single(rule):
            if any(own.covers(part) for own in held):
                continue
            if part.paths:
                paths.append(part)
            else:
                resources.setdefault(part._replace(verbs=()), []).append(part.verbs[0])
    return paths + [rule._replace(verbs=tuple(verbs)) for rule, verbs in resources.items()]
