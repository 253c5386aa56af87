"""The objects of a move: all of the operator's kinds, and the Secrets, ConfigMaps and Namespaces that they need."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from metal.api.kinds import Kinds
from metal.evidence.chain import HEAD
from metal.evidence.keys import LABEL
from metal.kube.client.protocol import Client
from metal.move.documents import Doc, Identity, fetch, identity, kinds_in_order
from metal.move.pause import MANAGERS, MARK

_REFERENCES = ("ignitionSecretRef", "userDataRef", "ipxeScriptSecretRef")
"""Fields of specs that name a Secret in the object's own namespace."""
_GIVEN = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass
class Inventory:
    """All objects of a move, owners first."""

    documents: list[Doc] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Number of objects of each kind, in order."""
        return dict(Counter(doc["kind"] for doc in self.documents))

    def versions(self) -> dict[Identity, str]:
        """The resourceVersion of each object."""
        return {identity(doc): doc["metadata"]["resourceVersion"] for doc in self.documents}

    def ending(self) -> list[Identity]:
        """Objects that are being deleted, which cannot be created in another API."""
        return [identity(doc) for doc in self.documents if doc["metadata"].get("deletionTimestamp")]

    def orphaned(self) -> list[Identity]:
        """Objects with an owner that is not moved; they lose that owner."""
        known = {doc["metadata"]["uid"] for doc in self.documents}
        return [
            identity(doc)
            for doc in self.documents
            if any(owner["uid"] not in known for owner in doc["metadata"].get("ownerReferences", []))
        ]


async def take(client: Client, kinds: Kinds, namespace: str) -> Inventory:
    """Read everything; `namespace` is the manager's. Raises ApiError."""
    found = {kind.kind: await fetch(client, kind) for kind in kinds_in_order(kinds)}
    ours = [doc for kind in kinds.all() for doc in found[kind.kind]]
    needed = {reference for doc in ours for reference in _references(doc, namespace)}
    uids = {doc["metadata"]["uid"] for doc in ours}
    labels = {kinds.key(LABEL), kinds.key(HEAD)}
    extra = [
        doc
        for doc in (*found["Secret"], *found["ConfigMap"])
        if _belongs(doc, uids, needed, namespace) or _is_of_evidence(doc, labels, namespace)
    ]
    spaces = {doc["metadata"].get("namespace", "") for doc in (*ours, *extra)} - {"", *_GIVEN} | {namespace}
    homes = [doc for doc in found["Namespace"] if doc["metadata"]["name"] in spaces]
    order = [kind.kind for kind in kinds_in_order(kinds)]
    everything = [_plain(doc) if doc["kind"] == "Namespace" else doc for doc in homes] + ours + extra
    return Inventory(sorted(everything, key=lambda doc: (order.index(doc["kind"]), str(identity(doc)))))


def _belongs(doc: Doc, uids: set[str], needed: set[Identity], namespace: str) -> bool:
    me = identity(doc)
    if me.namespace == namespace and me.name in (MARK, MANAGERS):
        return False
    return me in needed or any(owner["uid"] in uids for owner in doc["metadata"].get("ownerReferences", []))


def _is_of_evidence(doc: Doc, labels: set[str], namespace: str) -> bool:
    """Whether it is the key that signs evidence, the key that verifies it, or names the last record of a machine."""
    meta = doc["metadata"]
    return meta.get("namespace") == namespace and not labels.isdisjoint(meta.get("labels", {}))


def _references(doc: Doc, namespace: str) -> Iterator[Identity]:
    """Secrets that an object refers to."""
    spec, home = doc.get("spec") or {}, doc["metadata"].get("namespace", "")
    for name in _REFERENCES:
        if (reference := spec.get(name)) is not None:
            yield Identity("Secret", home, reference.get("name", ""))
    for tls in (spec.get("tls"), (spec.get("bmc") or {}).get("tls")):
        if tls is not None and tls.get("caSecretRef"):
            yield Identity("Secret", namespace, tls["caSecretRef"].get("name", ""))


def _plain(doc: Doc) -> Doc:
    """A Namespace without spec and status, which its API sets."""
    return {key: value for key, value in doc.items() if key not in ("spec", "status")}
