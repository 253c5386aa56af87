"""Makes a BMC and a BMCSecret for an Endpoint: finds credentials that the device accepts, creates both, once."""

import asyncio
import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from metal.api.bmc import BMC, BMCSecret, Pin
from metal.api.endpoint import Endpoint
from metal.api.kinds import Kinds
from metal.api.meta import Kind
from metal.bmc.errors import BMCAuthError, BMCForbidden, BMCNotFound, BMCNotSupported, BMCTimeout
from metal.bmc.pool import BMCEndpoint, Pool
from metal.controllers.endpoint.mac_prefixes import Credential, Prefix
from metal.controllers.endpoint.settings import EndpointSettings
from metal.controllers.shared.bmc_endpoint import NOT_PINNED, BMCEndpointDefaults, Problem, endpoint_for_bmc
from metal.controllers.shared.scope import Context
from metal.controllers.shared.sessions import log_out
from metal.kube.cache.informer import Informer
from metal.kube.meta import permissions
from metal.kube.meta.objects import Key


class Refused(Exception):
    """The device accepts none of the known credentials. str() is a sentence without any of them."""


class NotPossible(Exception):
    """Something that only a person can mend is in the way."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Enrolment:
    """Creates what an Endpoint is to have. Everything it creates carries the Endpoint's name."""

    def __init__(
        self,
        context: Context,
        bmcs: Informer[BMC],
        secrets: Informer[BMCSecret],
        pool: Pool,
        defaults: BMCEndpointDefaults,
        settings: EndpointSettings,
    ) -> None:
        self._context, self._bmcs, self._secrets = context, bmcs, secrets
        self._pool, self._defaults, self._settings = pool, defaults, settings
        self._refused: dict[tuple[str, int], dict[Credential, float]] = {}

    def complete(self, endpoint: Endpoint) -> bool:
        """Whether the BMC is there, and the BMCSecret that it names if that is the Endpoint's."""
        return self._bmcs.get(Key(endpoint.metadata.name)) is not None and not self.needs_contact(endpoint)

    def needs_contact(self, endpoint: Endpoint) -> bool:
        """Whether credentials have to be found. A BMCSecret that exists is taken as it is, whoever wrote it."""
        key = Key(endpoint.metadata.name)
        bmc = self._bmcs.get(key)
        uses_own = bmc is None or bmc.spec.bmc_secret_ref.name == key.name
        return uses_own and self._secrets.get(key) is None

    async def run(self, endpoint: Endpoint, prefix: Prefix) -> None:
        """Find credentials, create the BMCSecret and then the BMC, whichever of them is missing.

        Raises Refused, NotPossible, BMCError or ApiError. What was created before stays and is found by the next run.
        """
        name = endpoint.metadata.name
        manager_uuid = ""
        pin = None
        if self.needs_contact(endpoint):
            pin = await self._first_certificate(endpoint, prefix)
            credential, manager_uuid = await self._find(endpoint, prefix, pin)
            kind = self._context.kinds.bmc_secret
            self._secrets.observe(await self._context.client.create(kind, secret_manifest(name, credential)))
        if self._bmcs.get(Key(name)) is None:
            manifest = bmc_manifest(name, prefix, manager_uuid)
            self._bmcs.observe(await self._context.client.create(self._context.kinds.bmc, manifest))
            await self._keep(name, pin)
        self.forget(name)

    async def disown(self, endpoint: Endpoint) -> None:
        """Remove owner references to the Endpoint, which older Go operators wrote: BMC and BMCSecret outlive it."""
        kinds, key = self._context.kinds, Key(endpoint.metadata.name)
        if bmc := self._bmcs.get(key):
            await self._strip(kinds.bmc, self._bmcs, bmc, endpoint.metadata.uid)
        if secret := self._secrets.get(key):
            await self._strip(kinds.bmc_secret, self._secrets, secret, endpoint.metadata.uid)

    def forget(self, name: str) -> None:
        """Drop what is remembered of an Endpoint."""
        for known in [known for known in self._refused if known[0] == name]:
            del self._refused[known]

    async def _strip(self, kind: Kind[Any], informer: Informer[Any], obj: BMC | BMCSecret, uid: str) -> None:
        kept = [ref for ref in obj.metadata.owner_references if ref.uid != uid]
        if len(kept) == len(obj.metadata.owner_references):
            return
        metadata = {
            "ownerReferences": msgspec.to_builtins(kept) or None,
            "resourceVersion": obj.metadata.resource_version,
        }
        informer.observe(await self._context.client.patch(kind, obj.metadata.name, {"metadata": metadata}))

    async def _first_certificate(self, endpoint: Endpoint, prefix: Prefix) -> Pin | None:
        """What the device is held to from before its first password on; None where something else vouches for it."""
        probe = Credential("-", "-")
        try:
            self._access(endpoint, prefix, probe)
        except NotPossible as exc:
            if exc.problem.reason != NOT_PINNED:
                raise
        else:
            return None
        seen = await self._pool.certificate(endpoint.spec.ip or "", prefix.port)
        return Pin(sha256=seen, since=self._context.clock().replace(microsecond=0))

    async def _keep(self, name: str, pin: Pin | None) -> None:
        """A crash before this leaves it to the BMC's own first look."""
        if pin is not None:
            body = {"status": {"certificate": msgspec.to_builtins(pin)}}
            self._bmcs.observe(await self._context.client.patch_status(self._context.kinds.bmc, name, body))

    async def _find(self, endpoint: Endpoint, prefix: Prefix, pin: Pin | None) -> tuple[Credential, str]:
        """The first credential that the device accepts, and the UUID of its manager if it tells."""
        try:
            async with asyncio.timeout(self._settings.contact_timeout):
                for credential in self._rested(endpoint, prefix.credentials):
                    access = self._access(endpoint, prefix, credential, pin)
                    try:
                        return credential, await self._manager_uuid(access)
                    except (BMCAuthError, BMCForbidden):
                        self._remember(endpoint, credential)
        except TimeoutError:
            seconds = f"{self._settings.contact_timeout:g}"
            raise BMCTimeout(f"the BMC at {endpoint.spec.ip} did not finish within {seconds} s") from None
        await log_out(self._pool, endpoint.metadata.name, self._settings.logout_timeout)
        raise Refused(_refusal(endpoint, prefix))

    async def _manager_uuid(self, access: BMCEndpoint) -> str:
        """Ask something that needs credentials: the service root answers anybody."""
        bmc = self._pool.get(access)
        try:
            return (await bmc.manager()).uuid
        except (BMCNotFound, BMCNotSupported):
            await bmc.systems()
            return ""

    def _access(
        self, endpoint: Endpoint, prefix: Prefix, credential: Credential, pin: Pin | None = None
    ) -> BMCEndpoint:
        """As the BMC's own controller will compute it, so that the session is shared."""
        name = endpoint.metadata.name
        bmc = self._bmcs.get(Key(name)) or msgspec.convert(bmc_manifest(name, prefix, ""), BMC)
        if pin is not None:
            bmc = msgspec.structs.replace(bmc, status=msgspec.structs.replace(bmc.status, certificate=pin))
        data = {"username": credential.username.encode(), "password": credential.password.encode()}
        secret = BMCSecret(metadata=bmc.metadata, data=data)
        access = endpoint_for_bmc(bmc, endpoint, secret, self._defaults)
        if isinstance(access, Problem):
            raise NotPossible(access)
        return access

    def _rested(self, endpoint: Endpoint, credentials: Iterable[Credential]) -> list[Credential]:
        now = asyncio.get_running_loop().time()
        refused = self._refused.get(_memory(endpoint), {})
        rest = self._settings.credentials_rest
        return [c for c in credentials if c not in refused or now - refused[c] >= rest]

    def _remember(self, endpoint: Endpoint, credential: Credential) -> None:
        refused = self._refused.setdefault(_memory(endpoint), {})
        refused[credential] = asyncio.get_running_loop().time()


def secret_manifest(name: str, credential: Credential) -> dict[str, Any]:
    """A BMCSecret as it is created."""
    values = {"username": credential.username, "password": credential.password}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"metadata": {"name": name}, "data": data}


def bmc_manifest(name: str, prefix: Prefix, manager_uuid: str) -> dict[str, Any]:
    """A BMC as it is created."""
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


def _memory(endpoint: Endpoint) -> tuple[str, int]:
    return endpoint.metadata.name, endpoint.metadata.generation


def _refusal(endpoint: Endpoint, prefix: Prefix) -> str:
    name = endpoint.metadata.name
    return (
        f"the BMC at {endpoint.spec.ip} refused all credentials for the prefix {prefix.digits} (line {prefix.line} of "
        f"the MAC prefix file, {len(prefix.credentials)} in all): create BMCSecret {name} with the right ones, or add "
        "them to the file"
    )


def required_permissions(kinds: Kinds) -> tuple[permissions.Permission, ...]:
    """What enrolment does with the API."""
    created = (kinds.bmc_secret, kinds.bmc)
    return (
        *(permissions.Permission(kind, ("create",), "enrols the BMC behind a lease") for kind in created),
        *(permissions.Permission(kind, ("patch",), "removes owner references of older operators") for kind in created),
        *(permissions.disowns(kind) for kind in created),
        permissions.Permission(
            kinds.bmc, ("patch",), "keeps the certificate that the BMC was first spoken to with", "status"
        ),
    )
