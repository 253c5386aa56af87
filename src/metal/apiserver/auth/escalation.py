"""Prevents privilege escalation: a writer of a role or binding must hold every permission that it grants."""

from typing import Any

from metal.apiserver.auth.access import MASTERS, Attributes, forbidden, quoted
from metal.apiserver.auth.authorizer import GROUP, Authorizer, RoleNotFoundError
from metal.apiserver.auth.rbac_rules import Rule, go_list, missing
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.status import Who, not_found
from metal.apiserver.machinery.users import User

Obj = dict[str, Any]

FULL = (Rule(("*",), ("*",), ("*",)), Rule(("*",), paths=("*",)))
"""The permissions of an administrator."""
_COLLECTED = ("finalizers", "ownerReferences")
"""Fields that the garbage collector changes; managedFields and resourceVersion follow any change."""


class Escalation:
    """Called by the strategies of the RBAC kinds before an object is stored."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def role(self, ctx: RequestContext, obj: Obj, old: Obj | None) -> None:
        """Raises StatusError 403 when a role grants more than its writer holds, unless the writer may `escalate`."""
        if self._free(ctx, obj, old):
            return
        asked = Attributes(ctx.user, "escalate", GROUP, ctx.resource.plural, "", ctx.namespace, ctx.name)
        if self._authorizer.decide(asked).allowed:
            return
        name = obj["metadata"].get("name", "")
        if lacking := self._lacking(ctx.user, ctx.namespace, [Rule.read(rule) for rule in obj.get("rules") or ()]):
            raise forbidden(GROUP, ctx.resource.plural, name, lacking)
        aggregates = _aggregates(obj) or (old is not None and _aggregates(old))
        if aggregates and self._lacking(ctx.user, ctx.namespace, FULL):
            message = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GROUP, ctx.resource.plural, name, message)

    def binding(self, ctx: RequestContext, obj: Obj, old: Obj | None) -> None:
        """Raises StatusError: 403 when a binding grants more than its writer holds and may `bind`, 404 without role."""
        if self._free(ctx, obj, old):
            return
        ref = obj.get("roleRef") or {}
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(ref.get("kind", ""))
        if plural is None or not ref.get("name"):
            return  # Validation reports it.
        asked = Attributes(ctx.user, "bind", GROUP, plural, "", ctx.namespace, ref["name"])
        if self._authorizer.decide(asked).allowed:
            return
        try:
            rules = self._authorizer.role_rules(ref, ctx.namespace)
        except RoleNotFoundError:
            raise not_found(Who(GROUP, ctx.resource.plural, name=ref["name"])) from None
        if lacking := self._lacking(ctx.user, ctx.namespace, rules):
            raise forbidden(GROUP, ctx.resource.plural, obj["metadata"].get("name", ""), lacking)

    def _free(self, ctx: RequestContext, obj: Obj, old: Obj | None) -> bool:
        return MASTERS in ctx.user.groups or (old is not None and _only_collected(obj, old))

    def _lacking(self, user: User, namespace: str, wanted: list[Rule] | tuple[Rule, ...]) -> str:
        held, errors = self._authorizer.rules(user, namespace)
        lacking = missing(held, wanted)
        if not lacking:
            return ""
        who = f"user {quoted(user.name)} (groups={go_list(user.groups)})"
        message = "\n".join(sorted({str(rule) for rule in lacking}))
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n{message}"
        return f"{text}; resolution errors: [{errors}]" if errors else text


def _aggregates(obj: Obj) -> bool:
    return bool((obj.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(obj: Obj, old: Obj) -> bool:
    def rest(one: Obj) -> Obj:
        ignored = {*_COLLECTED, "managedFields", "resourceVersion"}
        return {**one, "metadata": {key: value for key, value in one["metadata"].items() if key not in ignored}}

    return rest(obj) == rest(old)
