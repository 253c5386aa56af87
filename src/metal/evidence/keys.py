"""The signing key: created once, a Secret in the manager's namespace; a ConfigMap publishes its public half."""

import base64
from collections.abc import Callable

from metal.api.core import CONFIG_MAP, SECRET, ConfigMap, Secret
from metal.api.kinds import Kinds
from metal.evidence.chain import Chain, Signer
from metal.evidence.signing import KeyUnusable, PublicKey, SigningKey, load_private, load_public
from metal.kube.client.errors import AlreadyExists, NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.withheld import withheld
from metal.kube.meta.permissions import APPLY, Permission, Where

PRIVATE = "private.pem"
LABEL = "evidence-key"
"""Label (under the API group) of the Secret and of the ConfigMap, by which both are found."""


class KeyStore:
    """Reads the key, or creates it. `name` is that of the Secret, `<name>-public` that of the ConfigMap."""

    def __init__(
        self, client: Client, kinds: Kinds, namespace: str, name: str, *,
        make: Callable[[], SigningKey] = SigningKey.new,
    ) -> None:  # fmt: skip
        self._client, self._namespace, self._name, self._make = client, namespace, name, make
        self._label = kinds.key(LABEL)
        self._chain = Chain(client, kinds, namespace)

    async def signing_key(self) -> Signer:
        """The key with the chain of records, after its public half was published. Raises KeyUnusable and ApiError."""
        key = self._read(await self._secret())
        await self._publish(key.public)
        return Signer(key, self._chain)

    async def _secret(self) -> Secret:
        with withheld():
            try:
                return await self._client.get(SECRET, self._name, self._namespace)
            except NotFound:
                return await self._create()

    async def _create(self) -> Secret:
        body = {
            "metadata": self._metadata(self._name, "private"),
            "type": "Opaque",
            "data": {PRIVATE: base64.b64encode(self._make().pem).decode()},
        }
        try:
            return await self._client.create(SECRET, body)
        except AlreadyExists:  # another manager created it first: use its key
            return await self._client.get(SECRET, self._name, self._namespace)

    def _read(self, secret: Secret) -> SigningKey:
        try:
            return load_private(secret.data.get(PRIVATE, b""))
        except KeyUnusable as exc:
            raise KeyUnusable(f"Secret {self._namespace}/{self._name}, key {PRIVATE}: {exc}; correct or delete it"
                              ) from None  # fmt: skip

    async def _publish(self, key: PublicKey) -> None:
        """Add the public key; former keys stay, so that their signatures can be verified."""
        name, entry = f"{self._name}-public", f"{key.id}.pem"
        try:
            known = await self._client.get(CONFIG_MAP, name, self._namespace)
            if known.data.get(entry) != key.pem:
                await self._client.patch(CONFIG_MAP, name, {"data": {entry: key.pem}}, self._namespace)
        except NotFound:
            body = {"metadata": self._metadata(name, "public"), "data": {entry: key.pem}}
            try:
                await self._client.create(CONFIG_MAP, body)
            except AlreadyExists:
                await self._client.patch(CONFIG_MAP, name, {"data": {entry: key.pem}}, self._namespace)

    def _metadata(self, name: str, half: str) -> dict[str, object]:
        return {"name": name, "namespace": self._namespace, "labels": {self._label: half}}


def public_keys(maps: tuple[ConfigMap, ...]) -> dict[str, PublicKey]:
    """The public keys in ConfigMaps, by id; invalid entries are skipped."""
    found: dict[str, PublicKey] = {}
    for text in (text for one in maps for text in one.data.values()):
        try:
            key = load_public(text.encode())
        except KeyUnusable:
            continue
        found[key.id] = key
    return found


def required_permissions() -> tuple[Permission, ...]:
    """Permissions of the key store. The Secret's name is a setting."""
    home = Where.HOME
    return (
        Permission(SECRET, ("get",), "reads the key that signs evidence of sanitization", where=home),
        Permission(SECRET, ("create",), "creates the key that signs evidence", where=home),
        Permission(CONFIG_MAP, ("get", *APPLY), "publishes the key that verifies evidence", where=home),
    )
