"""Enrols the BMC of an Endpoint: finds credentials that the device accepts, then creates the BMCSecret and the BMC.

Candidates are the default credentials of the MAC prefix entry. Where the certificate is trusted on first use, it is
pinned before the first password is sent. Each candidate is tried with a request that needs authentication, since the
service root answers without; the first accepted one becomes the BMCSecret. Refused candidates are remembered by
Endpoint and generation and not tried again for `credentials_rest`. An existing BMCSecret is used as it is, and no
credentials are tried. All objects carry the Endpoint's name and no owner reference: BMC and BMCSecret outlive the
lease. What was created before a failure stays, and the next pass continues from there: the BMCSecret has the pin and
the UUID of the manager in annotations, so that a BMC that is created later sends the password to the same device only.
"""

import asyncio
import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from metal.api.bmc import BMC, BMCSecret, Pin
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.meta import Kind
from metal.api.names import MANAGER_UUID
from metal.bmc.errors import BMCAuthError, BMCForbidden, BMCNotFound, BMCNotSupported, BMCTimeout
from metal.bmc.pool import BMCEndpoint
from metal.controllers.endpoint.mac_prefixes import Credential, Prefix
from metal.controllers.endpoint.scope import EndpointDeps
from metal.controllers.shared.access import pins
from metal.controllers.shared.access.bmc_endpoint import NOT_PINNED, endpoint_for_bmc
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.access.sessions import log_out
from metal.kube.cache.informer import Informer
from metal.kube.client.withheld import withheld
from metal.kube.meta import permissions
from metal.kube.meta.objects import Key


class CredentialsRefused(Exception):
    """The device accepts none of the known credentials. str() is a sentence that contains none of them."""


class NotReachable(Exception):
    """The BMC cannot be reached as declared; only a change of the objects or the configuration helps."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Enrolment:
    """Creates the BMCSecret and the BMC of an Endpoint."""

    def __init__(self, deps: EndpointDeps) -> None:
        self._deps, self._context, self._settings = deps, deps.context, deps.settings
        self._refused: dict[tuple[str, int], dict[Credential, float]] = {}

    def complete(self, endpoint: Endpoint) -> bool:
        """Whether the BMC exists, and the BMCSecret that it names if that has the Endpoint's name."""
        return self._deps.bmcs.get(Key(endpoint.metadata.name)) is not None and not self.needs_contact(endpoint)

    def needs_contact(self, endpoint: Endpoint) -> bool:
        """Whether credentials have to be found. An existing BMCSecret is used."""
        key = Key(endpoint.metadata.name)
        bmc = self._deps.bmcs.get(key)
        uses_own = bmc is None or bmc.spec.bmc_secret_ref.name == key.name
        return uses_own and self._deps.secrets.get(key) is None

    async def run(self, endpoint: Endpoint, prefix: Prefix) -> None:
        """Find credentials; create the BMCSecret and the BMC if they are missing.

        Raises CredentialsRefused, NotReachable, BMCError or ApiError. What was created before stays and is found by
        the next run.
        """
        name, kinds = endpoint.metadata.name, self._context.kinds
        if self.needs_contact(endpoint):
            self._require_encryption(name, prefix)
            pin = await self._first_certificate(endpoint, prefix)
            if self._deps.bmcs.get(Key(name)) is not None:
                await self._store_pin(name, pin)
            credential, manager_uuid = await self._find_credential(endpoint, prefix, pin)
            manifest = secret_manifest(name, credential)
            manifest["metadata"]["annotations"] = self._device(name, pin, manager_uuid)
            with withheld():
                self._deps.secrets.observe(await self._context.client.create(kinds.bmc_secret, manifest))
        if self._deps.bmcs.get(Key(name)) is None:
            await self._create_bmc_of(endpoint, prefix)
        self.forget(name)

    async def _create_bmc_of(self, endpoint: Endpoint, prefix: Prefix) -> None:
        """Create the BMC of the device that has accepted the BMCSecret. Raises ApiError."""
        name, kinds = endpoint.metadata.name, self._context.kinds
        secret = self._deps.secrets.get(Key(name))
        uuid = secret.metadata.annotations.get(kinds.key(MANAGER_UUID), "") if secret is not None else ""
        manifest = bmc_manifest(name, prefix, uuid)
        now = self._context.clock().replace(microsecond=0)
        pin = pins.restored(msgspec.convert(manifest, BMC), kinds, "certificate", now, secret)
        await self.create_bmc(endpoint, manifest, pin)
        await self._store_pin(name, pin)

    def _device(self, name: str, pin: Pin | None, manager_uuid: str) -> dict[str, str]:
        """The annotations of a new BMCSecret that say which device has accepted it."""
        kinds = self._context.kinds
        notes = {kinds.key(MANAGER_UUID): manager_uuid} if manager_uuid else {}
        return notes | pins.in_secret(kinds, {"certificate": pin.sha256} if pin is not None else {}, name)

    async def create_bmc(self, endpoint: Endpoint, manifest: dict[str, Any], pin: Pin | None = None) -> None:
        """Create the BMC, with its finalizer, its pin, and the annotation of one that waits for an approval.

        Raises ApiError.
        """
        policy = self._deps.defaults.policy
        kept = pins.change(self._context.kinds, "certificate", pin.sha256)["metadata"] if pin is not None else {}
        manifest["metadata"] |= {**kept, "finalizers": [self._context.kinds.key("bmc")]}
        if value := policy.first_value(endpoint.spec.mac_address):
            manifest["metadata"].setdefault("annotations", {})[policy.annotation] = value
        self._deps.bmcs.observe(await self._context.client.create(self._context.kinds.bmc, manifest))

    async def remove_owner_references(self, endpoint: Endpoint) -> None:
        """Remove owner references to the Endpoint, which the Go operator wrote: BMC and BMCSecret outlive it."""
        kinds, key = self._context.kinds, Key(endpoint.metadata.name)
        if bmc := self._deps.bmcs.get(key):
            await self._remove_owner(kinds.bmc, self._deps.bmcs, bmc, endpoint.metadata.uid)
        if secret := self._deps.secrets.get(key):
            with withheld():
                await self._remove_owner(kinds.bmc_secret, self._deps.secrets, secret, endpoint.metadata.uid)

    def forget(self, name: str) -> None:
        """Drop what is remembered about an Endpoint."""
        for known in [known for known in self._refused if known[0] == name]:
            del self._refused[known]

    async def _remove_owner(self, kind: Kind[Any], informer: Informer[Any], obj: BMC | BMCSecret, uid: str) -> None:
        kept = [ref for ref in obj.metadata.owner_references if ref.uid != uid]
        if len(kept) == len(obj.metadata.owner_references):
            return
        metadata = {
            "ownerReferences": msgspec.to_builtins(kept) or None,
            "resourceVersion": obj.metadata.resource_version,
        }
        informer.observe(await self._context.client.patch(kind, obj.metadata.name, {"metadata": metadata}))

    def _require_encryption(self, name: str, prefix: Prefix) -> None:
        """Raise NotReachable if the passwords of the entry would be sent in plain text and it does not say so."""
        bmc = self._deps.bmcs.get(Key(name))
        declared = bmc.spec.protocol.scheme if bmc is not None else prefix.scheme
        if (declared or self._deps.defaults.scheme).lower() == "https" or declared:
            return
        raise NotReachable(
            Problem(
                "PlainTextNotAllowed",
                f"bmc.scheme is http in the configuration, and the entry for the prefix {prefix.digits} (line "
                f"{prefix.line} of the MAC prefix file) does not say so: no password is sent in plain text. Set "
                "protocolScheme of the entry to https, or to http",
            )
        )

    async def _first_certificate(self, endpoint: Endpoint, prefix: Prefix) -> Pin | None:
        """Pin for the certificate, read before the first password is sent; None unless it is trusted on first use."""
        probe = Credential("-", "-")
        try:
            self._bmc_endpoint(endpoint, prefix, probe)
        except NotReachable as exc:
            if exc.problem.reason != NOT_PINNED:
                raise
        else:
            return None
        now = self._context.clock().replace(microsecond=0)
        bmc = self._deps.bmcs.get(Key(endpoint.metadata.name))
        if bmc is not None and (kept := pins.restored(bmc, self._context.kinds, "certificate", now)) is not None:
            return kept
        seen = await self._deps.pool.certificate(endpoint.spec.ip or "", prefix.port)
        return Pin(sha256=seen, since=now)

    async def _store_pin(self, name: str, pin: Pin | None) -> None:
        """Write the pin to the BMC, to its annotation first, which outlives the status. Raises ApiError."""
        if pin is None:
            return
        kinds, kind, client = self._context.kinds, self._context.kinds.bmc, self._context.client
        bmc = self._deps.bmcs.get(Key(name))
        if bmc is None or pins.kept(bmc, kinds, "certificate") != pin.sha256:
            await client.patch(kind, name, pins.change(kinds, "certificate", pin.sha256))
        elif bmc.status.certificate == pin:
            return
        body = {"status": {"certificate": msgspec.to_builtins(pin)}}
        self._deps.bmcs.observe(await client.patch_status(kind, name, body))

    async def _find_credential(self, endpoint: Endpoint, prefix: Prefix, pin: Pin | None) -> tuple[Credential, str]:
        """The first credential that the device accepts, and the UUID of its manager if it reports one."""
        try:
            async with asyncio.timeout(self._settings.contact_timeout):
                for credential in self._candidates(endpoint, prefix.credentials):
                    target = self._bmc_endpoint(endpoint, prefix, credential, pin)
                    try:
                        return credential, await self._manager_uuid(target)
                    except (BMCAuthError, BMCForbidden):
                        self._note_refused(endpoint, credential)
        except TimeoutError:
            seconds = f"{self._settings.contact_timeout:g}"
            raise BMCTimeout(f"the BMC at {endpoint.spec.ip} did not finish within {seconds} s") from None
        await log_out(self._deps.pool, endpoint.metadata.name, self._settings.logout_timeout)
        raise CredentialsRefused(_refusal(endpoint, prefix))

    async def _manager_uuid(self, target: BMCEndpoint) -> str:
        """UUID of the manager, read with a request that needs authentication."""
        bmc = self._deps.pool.get(target)
        try:
            return (await bmc.manager()).uuid
        except (BMCNotFound, BMCNotSupported):
            await bmc.systems()
            return ""

    def _bmc_endpoint(
        self, endpoint: Endpoint, prefix: Prefix, credential: Credential, pin: Pin | None = None
    ) -> BMCEndpoint:
        """The endpoint as the BMC controller will resolve it, so that both share one session."""
        name = endpoint.metadata.name
        bmc = self._deps.bmcs.get(Key(name)) or msgspec.convert(bmc_manifest(name, prefix, ""), BMC)
        if pin is not None:
            bmc = msgspec.structs.replace(bmc, status=msgspec.structs.replace(bmc.status, certificate=pin))
        data = {"username": credential.username.encode(), "password": credential.password.encode()}
        secret = BMCSecret(metadata=bmc.metadata, data=data, allowed_bmcs=(name,))
        found = endpoint_for_bmc(bmc, endpoint, secret, self._deps.defaults)
        if isinstance(found, Problem):
            raise NotReachable(found)
        return found

    def _candidates(self, endpoint: Endpoint, credentials: Iterable[Credential]) -> list[Credential]:
        now = asyncio.get_running_loop().time()
        refused = self._refused.get(_memo_key(endpoint), {})
        rest = self._settings.credentials_rest
        return [c for c in credentials if c not in refused or now - refused[c] >= rest]

    def _note_refused(self, endpoint: Endpoint, credential: Credential) -> None:
        refused = self._refused.setdefault(_memo_key(endpoint), {})
        refused[credential] = asyncio.get_running_loop().time()


def secret_manifest(name: str, credential: Credential) -> dict[str, Any]:
    """The BMCSecret to create."""
    values = {"username": credential.username, "password": credential.password}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"metadata": {"name": name}, "data": data, "allowedBMCs": [name]}


def bmc_manifest(name: str, prefix: Prefix, manager_uuid: str) -> dict[str, Any]:
    """The BMC to create."""
    protocol: dict[str, Any] = {"name": prefix.protocol, "port": prefix.port}
    if prefix.scheme:
        protocol["scheme"] = prefix.scheme
    spec: dict[str, Any] = {"endpointRef": {"name": name}, "bmcSecretRef": {"name": name}, "protocol": protocol}
    if manager_uuid:
        spec["bmcUUID"] = manager_uuid
    if prefix.console:
        spec["consoleProtocol"] = {"name": prefix.console.type, "port": prefix.console.port}
    if prefix.insecure_skip_verify:
        spec["tls"] = {"insecureSkipVerify": True}
    return {"metadata": {"name": name}, "spec": spec}


def _memo_key(endpoint: Endpoint) -> tuple[str, int]:
    return endpoint.metadata.name, endpoint.metadata.generation


def _refusal(endpoint: Endpoint, prefix: Prefix) -> str:
    name = endpoint.metadata.name
    return (
        f"the BMC at {endpoint.spec.ip} refused all credentials for the prefix {prefix.digits} (line {prefix.line} of "
        f"the MAC prefix file, {len(prefix.credentials)} in all): create BMCSecret {name} with valid credentials, or "
        "add them to the file"
    )


def required_permissions(kinds: Kinds) -> tuple[permissions.Permission, ...]:
    """Permissions of enrolment."""
    created = (kinds.bmc_secret, kinds.bmc)
    return (
        *(permissions.Permission(kind, ("create",), "enrols the BMC of a lease") for kind in created),
        *(
            permissions.Permission(
                kind, ("patch",), "removes owner references that the Go operator wrote, and keeps the pin of a BMC"
            )
            for kind in created
        ),
        *(permissions.disowns(kind) for kind in created),
        permissions.Permission(kinds.bmc, ("patch",), "pins the certificate that the BMC presented first", "status"),
    )
