"""Discovery documents: the served groups, versions and resources."""

import base64
import hashlib
from typing import Any

from metal.apiserver.machinery import status
from metal.apiserver.machinery.registry import Registry
from metal.apiserver.machinery.resources import Resource
from metal.apiserver.web.negotiate import Form

Obj = dict[str, Any]

STATUS_VERBS = ("get", "patch", "update")


def core_versions() -> Obj:
    """/api: versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(registry: Registry) -> Obj:
    """/apis: every group but the core one."""
    found = [_group(name, versions) for name, versions in sorted(registry.group_versions().items()) if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(registry: Registry, name: str) -> Obj:
    """/apis/GROUP. Raises StatusError 404."""
    versions = registry.group_versions().get(name)
    if not versions or not name:
        raise status.no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(registry: Registry, group: str, version: str) -> Obj:
    """/api/v1 and /apis/GROUP/VERSION. Raises StatusError 404."""
    found = registry.of(group, version)
    if not found:
        raise status.no_such_path()
    listed = [entry for resource in found for entry in _entries(resource)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}


def _entries(resource: Resource) -> list[Obj]:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    entry["storageVersionHash"] = _storage_hash(resource)
    actions = [_action(resource, name, action) for name, action in sorted(resource.actions.items())]
    if not resource.status:
        return [entry, *actions]
    part = {"singularName": "", "namespaced": resource.namespaced, "kind": resource.kind, "verbs": list(STATUS_VERBS)}
    return [entry, {"name": f"{resource.plural}/status", **part}, *actions]


def _action(resource: Resource, name: str, action: Resource) -> Obj:
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "group": action.group,
        "version": action.version,
        "kind": action.kind,
        "verbs": list(action.verbs),
    }


def _storage_hash(resource: Resource) -> str:
    """The storageVersionHash, which tells storage migrators the stored version, computed as on a cluster."""
    group, _, version = resource.storage_api_version.rpartition("/")
    digest = hashlib.sha256(f"{group}/{version}/{resource.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def aggregated(registry: Registry, form: Form, *, core: bool) -> Obj:
    """/api or /apis in one document (KEP-3352)."""
    names = [name for name in sorted(registry.group_versions()) if (name == "") is core]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form.version}",
        "metadata": {},
        "items": [_aggregated_group(registry, name) for name in names],
    }


def _aggregated_group(registry: Registry, name: str) -> Obj:
    versions = [
        {
            "version": version,
            "freshness": "Current",
            "resources": [_aggregated_resource(resource) for resource in registry.of(name, version)],
        }
        for version in registry.group_versions()[name]
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _aggregated_resource(resource: Resource) -> Obj:
    # As on clusters, without group and version for built-in kinds: they are those of the list.
    home = (resource.group, resource.version) if resource.custom else ("", "")
    kind = {"group": home[0], "version": home[1], "kind": resource.kind}
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    parts = [{"subresource": "status", "responseKind": kind, "verbs": list(STATUS_VERBS)}] if resource.status else []
    for name, action in sorted(resource.actions.items()):
        answer = {"group": action.group, "version": action.version, "kind": action.kind}
        parts.append({"subresource": name, "responseKind": answer, "verbs": list(action.verbs)})
    if parts:
        entry["subresources"] = parts
    return entry
