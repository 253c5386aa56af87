"""What a program needs of an API, declared beside the code that needs it, and the RBAC rules that follow from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from metal.kube.meta.objects import Kind

FOLLOW = ("list", "watch")
"""Verbs of an informer."""
APPLY = ("create", "patch")
"""Verbs of server-side apply: the API asks for create, too, when the object is not there yet."""


class Where(StrEnum):
    """In which namespaces a right is needed; each has a role of its own, which is bound by itself."""

    EVERYWHERE = "everywhere"
    HOME = "home"
    """The namespace in which the program itself lives."""
    TENANTS = "tenants"
    """Namespaces that users of the program own; an administrator may allow one by one."""


@dataclass(frozen=True)
class Permission:
    """What one piece of code does with a kind.

    names: the only objects it does it with, where they are known before; `create` and FOLLOW know no names.
    """

    kind: Kind[Any]
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    where: Where = Where.EVERYWHERE
    names: tuple[str, ...] = ()


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource: what a rule is made of."""

    where: Where
    group: str
    resource: str
    """Plural, with `/subresource` where it is one."""
    names: tuple[str, ...]
    verb: str

    def allows(self, request: "Request", home: str) -> bool:
        """Whether this right covers the request of a program that lives in the namespace `home`."""
        if (self.group, self.resource, self.verb) != (request.group, request.resource, request.verb):
            return False
        if self.where is Where.HOME and request.namespace != home:
            return False
        return not self.names or request.name in self.names


@dataclass(frozen=True)
class Request:
    """What an authorizer knows of a request."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}.{self.group or 'core'} {self.name}{where}"


def follows(*kinds: Kind[Any], why: str) -> tuple[Permission, ...]:
    """The access of informers."""
    return tuple(Permission(kind, FOLLOW, why) for kind in kinds)


def blocks(owner: Kind[Any], where: Where = Where.EVERYWHERE) -> Permission:
    """What writing an owner reference with blockOwnerDeletion needs, such as `ownership.controller_reference` makes.

    Only clusters with the admission plugin OwnerReferencesPermissionEnforcement ask for it (OpenShift does).
    """
    return Permission(owner, ("update",), "owner references to it hold its deletion up", "finalizers", where)


def disowns(owned: Kind[Any], where: Where = Where.EVERYWHERE) -> Permission:
    """What changing the owner references of an object that exists needs, on clusters with that admission plugin."""
    return Permission(owned, ("delete",), "its owner references change while it exists", where=where)


def rights(permissions: Iterable[Permission]) -> tuple[Right, ...]:
    """The rights that all these need together, sorted; one that another covers in any case is left out."""
    wanted = {
        Right(one.where, one.kind.group, _resource(one), one.names, verb) for one in permissions for verb in one.verbs
    }
    return tuple(sorted(right for right in wanted if not any(_covers(other, right) for other in wanted - {right})))


def rules(held: Iterable[Right], where: Where) -> list[dict[str, Any]]:
    """`rules` of a Role or ClusterRole: as few as possible, always in the same order."""
    verbs: dict[tuple[str, tuple[str, ...], str], set[str]] = {}
    for right in held:
        if right.where is where:
            verbs.setdefault((right.group, right.names, right.resource), set()).add(right.verb)
    merged: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, names, resource), found in sorted(verbs.items()):
        merged.setdefault((group, names, tuple(sorted(found))), []).append(resource)
    return [_rule(group, names, found, resources) for (group, names, found), resources in sorted(merged.items())]


def reasons(permissions: Iterable[Permission]) -> Mapping[tuple[Where, str, str, str], list[str]]:
    """Why each (where, group, resource, verb) is needed, from the sentences in the permissions."""
    found: dict[tuple[Where, str, str, str], list[str]] = {}
    for one in permissions:
        for verb in one.verbs:
            why = found.setdefault((one.where, one.kind.group, _resource(one), verb), [])
            if one.why not in why:
                why.append(one.why)
    return found


def _resource(access: Permission) -> str:
    return f"{access.kind.plural}/{access.subresource}" if access.subresource else access.kind.plural


def _covers(other: Right, right: Right) -> bool:
    """Tenants' rights are bound by themselves, so they make no other right superfluous."""
    same = (other.group, other.resource, other.verb) == (right.group, right.resource, right.verb)
    wider = other.where is Where.EVERYWHERE or other.where is right.where
    return same and wider and (not other.names or other.names == right.names)


def _rule(group: str, names: tuple[str, ...], verbs: tuple[str, ...], resources: list[str]) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [group], "resources": resources}
    if names:
        rule["resourceNames"] = list(names)
    return {**rule, "verbs": list(verbs)}
