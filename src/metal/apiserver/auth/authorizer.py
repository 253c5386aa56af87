"""RBAC authorizer: decides by the stored Roles and bindings whether a user may do something.

A decision walks the ClusterRoleBindings, then the RoleBindings of the namespace of the request; the first rule that
allows the access ends the walk, and without one the access is refused. There are no rules that deny. Members of
system:masters are allowed before anything is looked up.

Decoded bindings, the rules of each role, and the decisions themselves are remembered. The authorizer listens to the
store: any committed change in rbac.authorization.k8s.io clears all three, so a new binding or a removed role is
effective with the next request. Decisions with very long attributes are not remembered, and the number of decisions
is limited, because any client can ask any number of questions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from metal.apiserver.auth.access import ACCOUNT, MASTERS, Attributes, quoted, refusal
from metal.apiserver.auth.rbac_rules import Rule
from metal.apiserver.machinery.records import Event, ObjectKey, ResourceKey
from metal.apiserver.machinery.users import User
from metal.apiserver.storage.store import Store

GROUP = "rbac.authorization.k8s.io"
ROLES = ResourceKey(GROUP, "roles")
CLUSTER_ROLES = ResourceKey(GROUP, "clusterroles")
BINDINGS = ResourceKey(GROUP, "rolebindings")
CLUSTER_BINDINGS = ResourceKey(GROUP, "clusterrolebindings")
_KEPT = 10_000
"""Maximum of decisions that are remembered until a role or binding changes."""
_LONGEST = 1_000
"""Maximum of characters of remembered attributes: any client can send megabytes of them in an access review."""

Obj = dict[str, Any]


class Decision(NamedTuple):
    """The decision; reason names the binding that allowed the access, or the roles that could not be looked up."""

    allowed: bool
    reason: str = ""


class Found(NamedTuple):
    """Rules that one binding gives to a user, or why they could not be looked up."""

    source: str
    rules: tuple[Rule, ...]
    error: str = ""


class RoleNotFoundError(Exception):
    """A binding names a role that does not exist."""


class Authorizer:
    """Decides from committed objects."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decisions: dict[tuple[Any, ...], Decision] = {}
        self._rules: dict[ObjectKey, tuple[Rule, ...]] = {}
        self._bindings: dict[str, list[Obj]] = {}
        store.listen(self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.record.key.resource.group == GROUP:
            self._decisions.clear()
            self._rules.clear()
            self._bindings.clear()

    def check(self, asked: Attributes) -> None:
        """Raises StatusError 403 unless the access is allowed."""
        if MASTERS in asked.user.groups:
            return
        decision = self.decide(asked)
        if not decision.allowed:
            raise refusal(asked, decision.reason)

    def decide(self, asked: Attributes) -> Decision:
        """Whether the access is allowed, and why."""
        if MASTERS in asked.user.groups:
            return Decision(allowed=True)
        key = (asked.user.name, asked.user.groups, *asked[1:])
        known = self._decisions.get(key)
        if known is None:
            known = self._decide(asked)
            if _length(asked) <= _LONGEST:
                if len(self._decisions) >= _KEPT:
                    self._decisions.clear()
                self._decisions[key] = known
        return known

    def _decide(self, asked: Attributes) -> Decision:
        errors: list[str] = []
        for found in self._of(asked.user, asked.namespace):
            if any(rule.allows(asked) for rule in found.rules):
                return Decision(allowed=True, reason=f"RBAC: allowed by {found.source}")
            if found.error:
                errors.append(found.error)
        return Decision(allowed=False, reason=f"RBAC: {_joined(errors)}" if errors else "")

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], str]:
        """Every rule that a user has in a namespace, and errors of the lookup."""
        found = list(self._of(user, namespace))
        errors = [entry.error for entry in found if entry.error]
        return [rule for entry in found for rule in entry.rules], _joined(errors) if errors else ""

    def role_rules(self, ref: Obj, namespace: str) -> tuple[Rule, ...]:
        """Rules of the role that a binding in `namespace` names. Raises RoleNotFoundError."""
        if ref.get("kind") == "Role":
            key, plural = ObjectKey(ROLES, namespace, ref["name"]), "role"
        elif ref.get("kind") == "ClusterRole":
            key, plural = ObjectKey(CLUSTER_ROLES, "", ref["name"]), "clusterrole"
        else:
            raise RoleNotFoundError(f"unsupported role reference kind: {quoted(str(ref.get('kind', '')))}")
        if key not in self._rules:
            record = self._store.get(key)
            if record is None:
                raise RoleNotFoundError(f"{plural}.{GROUP} {quoted(key.name)} not found")
            self._rules[key] = tuple(Rule.read(rule) for rule in record.decode().get("rules") or ())
        return self._rules[key]

    def _of(self, user: User, namespace: str) -> Iterator[Found]:
        for binding in self._read(""):
            if (subject := _applying(user, binding, "")) is not None:
                yield self._found(binding, subject, "")
        for binding in self._read(namespace) if namespace else ():
            if (subject := _applying(user, binding, namespace)) is not None:
                yield self._found(binding, subject, namespace)

    def _read(self, namespace: str) -> list[Obj]:
        known = self._bindings.get(namespace)
        if known is None:
            key = BINDINGS if namespace else CLUSTER_BINDINGS
            known = [record.decode() for record in self._store.collection(key, namespace)]
            if known:  # any client can ask about any number of namespaces that do not exist
                self._bindings[namespace] = known
        return known

    def _found(self, binding: Obj, subject: Obj, namespace: str) -> Found:
        try:
            rules = self.role_rules(binding["roleRef"], namespace)
        except RoleNotFoundError as gone:
            return Found("", (), str(gone))
        ref, name = binding["roleRef"], binding["metadata"]["name"]
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        where = f"{name}/{namespace}" if namespace else name
        role = f"{ref['kind']} {quoted(ref['name'])}"
        return Found(f"{kind} {quoted(where)} of {role} to {_described(subject, namespace)}", rules)


def _length(asked: Attributes) -> int:
    return sum(map(len, (asked.user.name, *asked.user.groups, *asked[1:])))


def _applying(user: User, binding: Obj, namespace: str) -> Obj | None:
    """The first subject of a binding that is this user."""
    return next((subject for subject in binding.get("subjects") or () if _is(user, subject, namespace)), None)


def _is(user: User, subject: Obj, namespace: str) -> bool:
    name = subject.get("name", "")
    if subject.get("kind") == "User":
        return bool(user.name == name)
    if subject.get("kind") == "Group":
        return name in user.groups
    space = subject.get("namespace") or namespace
    return bool(space) and user.name == f"{ACCOUNT}{space}:{name}"


def _described(subject: Obj, namespace: str) -> str:
    name = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject.get('kind')} {quoted(name)}"


def _joined(errors: list[str]) -> str:
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
