"""Access reviews: SelfSubjectReview, the SubjectAccessReviews, and SelfSubjectRulesReview."""

from functools import partial
from typing import Any

from metal.apiserver.auth.access import Attributes
from metal.apiserver.auth.authorizer import Authorizer
from metal.apiserver.auth.rbac_rules import Rule
from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.resources import RequestContext, Resource, Strategy
from metal.apiserver.machinery.status import Who, bad_request
from metal.apiserver.machinery.status import invalid as refused
from metal.apiserver.machinery.users import User
from metal.apiserver.schema.schema import compiled
from metal.kube.meta.clock import Clock, timestamp

Obj = dict[str, Any]

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def reviews(authorizer: Authorizer, clock: Clock) -> list[Resource]:
    """The review resources, whose objects are answered and not stored."""
    return [
        review(AUTHENTICATION, "SelfSubjectReview", partial(_who, clock)),
        review(AUTHORIZATION, "SelfSubjectAccessReview", partial(_may_i, authorizer)),
        review(AUTHORIZATION, "SelfSubjectRulesReview", partial(_my_rules, authorizer)),
        review(AUTHORIZATION, "SubjectAccessReview", partial(_may, authorizer)),
        review(AUTHORIZATION, "LocalSubjectAccessReview", partial(_may_here, authorizer), namespaced=True),
    ]


def review(group: str, kind: str, answer: Any, *, namespaced: bool = False) -> Resource:
    """A resource that supports create only and stores nothing. answer: computes the response."""
    schema = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
    return Resource(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        list_kind=f"{kind}List",
        schema=compiled(schema),
        openapi=schema,
        namespaced=namespaced,
        custom=False,
        verbs=("create",),
        strategy=Strategy(review=answer, generations=False),
    )


def user_info(user: User) -> Obj:
    """authentication.k8s.io UserInfo."""
    parts = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra},
    }
    return {name: value for name, value in parts.items() if value}


def _who(clock: Clock, ctx: RequestContext, obj: Obj) -> Obj:
    meta = {"creationTimestamp": timestamp(clock())}
    return {**obj, "metadata": meta, "status": {"userInfo": user_info(ctx.user)}}


def _may_i(authorizer: Authorizer, ctx: RequestContext, obj: Obj) -> Obj:
    spec = _spec(obj)
    _refuse(ctx, _check_question(spec) + _check_metadata(obj))
    return _decided(authorizer, ctx.user, obj, spec)


def _may(authorizer: Authorizer, ctx: RequestContext, obj: Obj) -> Obj:
    spec = _spec(obj)
    _refuse(ctx, _check_question(spec) + _check_subject(spec) + _check_metadata(obj))
    return _decided(authorizer, _subject(spec), obj, spec)


def _may_here(authorizer: Authorizer, ctx: RequestContext, obj: Obj) -> Obj:
    spec = _spec(obj)
    causes = _check_question(spec) + _check_subject(spec) + _check_metadata(obj, namespaced=True)
    space = obj["metadata"].setdefault("namespace", ctx.namespace)
    asked = spec.get("resourceAttributes")
    if asked is not None and asked.get("namespace", "") != space:
        message = "must match metadata.namespace"
        causes.append(invalid("spec.resourceAttributes.namespace", asked.get("namespace", ""), message))
    if (path := spec.get("nonResourceAttributes")) is not None:
        causes.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    _refuse(ctx, causes)
    if space != ctx.namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {ctx.namespace}")
    return _decided(authorizer, _subject(spec), obj, spec)


def _my_rules(authorizer: Authorizer, ctx: RequestContext, obj: Obj) -> Obj:
    namespace = _spec(obj).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules, errors = authorizer.rules(ctx.user, str(namespace))
    status: Obj = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)} for rule in rules if rule.paths
        ],
        "incomplete": False,
    }
    if errors:
        status["evaluationError"] = errors
    return {**obj, "metadata": {}, "spec": {}, "status": status}


def _resource_rule(rule: Rule) -> Obj:
    shown: Obj = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    return {**shown, "resourceNames": list(rule.names)} if rule.names else shown


def _spec(obj: Obj) -> Obj:
    spec = obj.get("spec") or {}
    parts = [spec.get(name) for name in ("resourceAttributes", "nonResourceAttributes") if isinstance(spec, dict)]
    if not isinstance(spec, dict) or not all(part is None or isinstance(part, dict) for part in parts):
        raise bad_request("spec: expected an object with resourceAttributes or nonResourceAttributes")
    texts = [value for part in parts if part for value in part.values() if not isinstance(value, dict)]
    if not all(isinstance(value, str) for value in texts):
        raise bad_request("spec: the attributes are texts")
    return spec


def _check_question(spec: Obj) -> list[Cause]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        message = "cannot be specified in combination with resourceAttributes"
        return [invalid("spec.nonResourceAttributes", path, message)]
    if resource is None and path is None:
        message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, message)]
    return []


def _check_subject(spec: Obj) -> list[Cause]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _check_metadata(obj: Obj, *, namespaced: bool = False) -> list[Cause]:
    aside = {"managedFields", "creationTimestamp", *(("namespace",) if namespaced else ())}
    found = {key: value for key, value in obj["metadata"].items() if value and key not in aside}
    message = "must be empty except for namespace" if namespaced else "must be empty"
    return [invalid("metadata", found, message)] if found else []


def _refuse(ctx: RequestContext, causes: list[Cause]) -> None:
    if causes:
        raise refused(Who(ctx.resource.group, ctx.resource.plural, ctx.resource.kind), causes)


def _subject(spec: Obj) -> User:
    groups = spec.get("groups") or ()
    if not isinstance(spec.get("user", ""), str) or not all(isinstance(group, str) for group in groups):
        raise bad_request("spec: user and groups are texts")
    return User(spec.get("user", ""), str(spec.get("uid") or ""), tuple(groups))


def _decided(authorizer: Authorizer, user: User, obj: Obj, spec: Obj) -> Obj:
    decision = authorizer.decide(_question(user, spec))
    status: Obj = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**obj, "status": status}


def _question(user: User, spec: Obj) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""))
    asked = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(user, *(asked.get(name, "") for name in names))
