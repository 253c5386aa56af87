"""The attributes that an authorizer decides on, and the messages of refusals (those of kube-apiserver)."""

from typing import NamedTuple

from metal.apiserver.machinery import selectors
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.machinery.status import StatusError
from metal.apiserver.machinery.users import User

MASTERS = "system:masters"
"""The group that may do everything, independent of roles."""
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))
"""The user of requests without credentials."""


ACCOUNT = "system:serviceaccount:"
"""Prefix of the user names of ServiceAccounts."""


def service_account(namespace: str, name: str) -> tuple[str, tuple[str, ...]]:
    """User name and groups of a ServiceAccount."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return f"{ACCOUNT}{namespace}:{name}", groups


class Attributes(NamedTuple):
    """One access to decide on. For a path that is no resource, only user, verb and `path` are set."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    version: str = ""

    @property
    def combined(self) -> str:
        """`resource/subresource`, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def of_request(ctx: RequestContext, verb: str, name: str = "") -> Attributes:
    """The attributes of a request. name: the one object that a list or watch selects."""
    resource, name = ctx.resource, ctx.name or name
    # A Namespace counts as inside itself, so that a RoleBinding in it can grant reading it.
    namespace = name if (resource.group, resource.plural) == ("", "namespaces") else ctx.namespace
    return Attributes(
        ctx.user, verb, resource.group, resource.plural, ctx.subresource, namespace, name, version=resource.version
    )


def quoted(text: str) -> str:
    """Text in the form of Go's %q, for characters that occur in names."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in escaped)
    return f'"{plain}"'


def sentence(asked: Attributes) -> str:
    """`User "x" cannot list resource "y" in API group "z" ...`."""
    who = f"User {quoted(asked.user.name)} cannot {asked.verb}"
    if asked.path:
        return f"{who} path {quoted(asked.path)}"
    what = f"{who} resource {quoted(asked.combined)} in API group {quoted(asked.group)}"
    if asked.namespace:
        return f"{what} in the namespace {quoted(asked.namespace)}"
    return f"{what} at the cluster scope"


def refusal(asked: Attributes, reason: str = "") -> StatusError:
    """403. reason: errors while roles were looked up."""
    message = sentence(asked).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return forbidden(asked.group, asked.resource, asked.name, f"{message}: {reason}" if reason else message)


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    """403 about an object, a resource, or another path."""
    details = {key: value for key, value in (("name", name), ("group", group), ("kind", resource)) if value}
    if not resource:
        return StatusError(403, "Forbidden", f"forbidden: {why}", details)
    qualified = f"{resource}.{group}" if group else resource
    subject = f'{qualified} "{name}"' if name else qualified
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def selected(fields: str) -> str:
    """The one name that a field selector selects, else empty; so rules with resourceNames cover lists."""
    if "metadata.name" not in fields:
        return ""
    try:
        terms = selectors.field_terms(fields)
    except selectors.BadSelector:
        return ""
    return next((term.value for term in terms if term.path == "metadata.name" and term.equal), "")
