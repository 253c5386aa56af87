"""Questions that users may ask about themselves: who am I, may I do this, what may I do. All are administrators."""

from typing import Any

from metal.apiserver.resources import Resource, Strategy
from metal.apiserver.schema import Compiled

Obj = dict[str, Any]

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_WHY = "every authenticated user of this API is an administrator"


def reviews() -> list[Resource]:
    """SelfSubjectReview, SelfSubjectAccessReview and SelfSubjectRulesReview."""
    return [
        _review("authentication.k8s.io", "SelfSubjectReview", _who),
        # kubectl 1.27 knows no v1.
        _review("authentication.k8s.io", "SelfSubjectReview", _who, version="v1beta1"),
        _review("authorization.k8s.io", "SelfSubjectAccessReview", _may),
        _review("authorization.k8s.io", "SelfSubjectRulesReview", _rules),
    ]


def _review(group: str, kind: str, answer: Any, version: str = "v1") -> Resource:
    schema = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        list_kind=f"{kind}List",
        schema=Compiled(schema),
        openapi=schema,
        namespaced=False,
        custom=False,
        verbs=("create",),
        strategy=Strategy(review=answer, generations=False),
    )


def _who(name: str, groups: tuple[str, ...], obj: Obj) -> Obj:
    return {**obj, "status": {"userInfo": {"username": name, "groups": list(groups)}}}


def _may(name: str, groups: tuple[str, ...], obj: Obj) -> Obj:
    return {**obj, "status": {"allowed": True, "reason": _WHY}}


def _rules(name: str, groups: tuple[str, ...], obj: Obj) -> Obj:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {**obj, "status": {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}}
