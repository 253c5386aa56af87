"""Roles and bindings for the cases about who may do what."""

import asyncio
from typing import Any

from tests.conformance.api import GROUP, Api, Obj

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"


def rule(verbs: str, resources: str = "widgets", group: str = GROUP, **more: Any) -> Obj:
    """A PolicyRule; verbs and resources are words in one text."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def user(name: str) -> Obj:
    """A User as a subject."""
    return {"kind": "User", "apiGroup": RBAC_GROUP, "name": name}


def role(name: str, *rules: Obj, **more: Any) -> Obj:
    """A Role."""
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules), **more}


def cluster_role(name: str, *rules: Obj, **more: Any) -> Obj:
    """A ClusterRole."""
    return {**role(name, *rules), "kind": "ClusterRole", **more}


def binding(name: str, ref: str, *subjects: Obj, cluster: bool = False) -> Obj:
    """A RoleBinding, or ClusterRoleBinding. ref: `Role/name` or `ClusterRole/name`."""
    kind, _, named = ref.partition("/")
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding" if cluster else "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": named},
        "subjects": list(subjects),
    }


async def give(api: Api, name: str, *rules: Obj) -> Api:
    """The API as the user `name`, who may do in the case's namespace what the rules say, as soon as that counts."""
    (await api.create(api.path("roles", base=RBAC), role(name, *rules))).ok()
    (await api.create(api.path("rolebindings", base=RBAC), binding(name, f"Role/{name}", user(name)))).ok()
    wanted = [(r, verb) for r in rules for verb in r["verbs"][:1]]
    for one, verb in wanted:
        await settled(api, name, one, verb)
    return api.acting(name)


async def settled(api: Api, name: str, one: Obj, verb: str, *, allowed: bool = True) -> None:
    """Wait until the authorizer has heard of a rule: kube-apiserver reads roles from a cache."""
    resource, _, sub = one["resources"][0].partition("/")
    asked = {"namespace": api.space, "verb": verb, "group": one["apiGroups"][0], "resource": resource}
    asked |= {"subresource": sub, "name": (one.get("resourceNames") or [""])[0]}
    await answered(api, {"user": name, "resourceAttributes": asked}, allowed=allowed)


async def answered(api: Api, spec: Obj, *, allowed: bool = True) -> Obj:
    """Ask until the answer is what it should become; returns its status."""
    async with asyncio.timeout(10):
        while True:
            status = await review(api, spec)
            if status["allowed"] is allowed:
                return status
            await asyncio.sleep(0.02)


async def review(api: Api, spec: Obj) -> Obj:
    """The status of a SubjectAccessReview."""
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status: Obj = (await api.create(path, asked)).ok()["status"]
    return status
