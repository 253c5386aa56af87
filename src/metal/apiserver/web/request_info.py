"""Attributes of an HTTP request for the authorizer, and impersonation (RequestInfo of kube-apiserver)."""

from urllib.parse import unquote

from aiohttp import web

from metal.apiserver.auth.access import (
    ACCOUNT,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    selected,
    service_account,
)
from metal.apiserver.auth.authorizer import Authorizer
from metal.apiserver.machinery import status
from metal.apiserver.machinery.users import User
from metal.apiserver.web import options
from metal.apiserver.web.paths import Target

AUTHENTICATION = "authentication.k8s.io"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_EXTRA = "impersonate-extra-"


def attributes(request: web.Request, target: Target | None, user: User) -> Attributes:
    """The attributes of a request."""
    if target is None:
        return Attributes(user, request.method.lower(), path=request.path)
    verb = _VERBS.get(request.method, "get")
    name = target.name
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    if verb in ("list", "get") and options.flag(request.query, "watch"):
        verb = "watch"
    if not name and verb in ("list", "watch"):
        name = selected(request.query.get("fieldSelector", ""))
    core_namespace = (target.group, target.plural) == ("", "namespaces")
    namespace = name if core_namespace else target.namespace
    return Attributes(
        user, verb, target.group, target.plural, target.subresource, namespace, name, version=target.version
    )


def impersonated(request: web.Request, user: User, authorizer: Authorizer) -> User:
    """The user that the headers of `kubectl --as` impersonate; each part needs the verb `impersonate`.

    Raises StatusError 400 and 403.
    """
    headers = request.headers
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    extra = _extra(request)
    if not name:
        if groups or uid or extra:
            raise status.bad_request("requested groups, a uid or extra fields without impersonating a user")
        return user
    own: tuple[str, ...] = ()
    space, _, account = name.removeprefix(ACCOUNT).partition(":") if name.startswith(ACCOUNT) else ("", "", "")
    if space and account:
        authorizer.check(Attributes(user, "impersonate", "", "serviceaccounts", "", space, account))
        own = service_account(space, account)[1][:-1]
    else:
        authorizer.check(Attributes(user, "impersonate", "", "users", name=name))
    for group in groups:
        authorizer.check(Attributes(user, "impersonate", "", "groups", name=group))
    for key, values in extra:
        for value in values:
            authorizer.check(Attributes(user, "impersonate", AUTHENTICATION, "userextras", key, name=value))
    if uid:
        authorizer.check(Attributes(user, "impersonate", AUTHENTICATION, "uids", name=uid))
    return User(name, uid, _complete(name, groups or own), extra)


def _extra(request: web.Request) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for header, value in request.headers.items():
        if header.lower().startswith(_EXTRA):
            found.setdefault(unquote(header.lower()[len(_EXTRA) :]), []).append(value)
    return tuple((key, tuple(values)) for key, values in found.items())


def _complete(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Groups including system:authenticated or system:unauthenticated."""
    if name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    return groups if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else (*groups, AUTHENTICATED)
