"""Credentials of registries from a Secret of type kubernetes.io/dockerconfigjson in the manager's namespace."""

import asyncio

import structlog

from metal.api.core import SECRET
from metal.boot.registry.credentials import Auths, parse_auths
from metal.kube.client.errors import ApiError, NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.withheld import withheld
from metal.kube.meta.permissions import Permission, Where

_KEY = ".dockerconfigjson"
_log = structlog.get_logger(__name__)


class AuthSecret:
    """A metal.boot.registry.credentials.CredentialSource.

    The Secret is read when credentials are needed, at most every `interval` seconds, and every `shortest` seconds while
    a registry rejects what it contains. If it cannot be read, the last content stays in use; the content of a deleted
    Secret does not.
    """

    def __init__(
        self, client: Client, namespace: str, name: str, *, interval: float = 30.0, shortest: float = 5.0
    ) -> None:
        self._client, self._namespace, self._name = client, namespace, name
        self._interval, self._shortest = interval, shortest
        self._auths: Auths = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self.problem = ""
        """Why the present content is not used; empty if it is."""

    def __repr__(self) -> str:
        return f"<AuthSecret {self._namespace}/{self._name} {'broken' if self.problem else 'ok'}>"

    async def auths(self, *, rejected: bool = False) -> Auths:
        """The present content, or the last one that could be used."""
        async with self._reading:
            now = asyncio.get_running_loop().time()
            if now - self._read_at >= (self._shortest if rejected or self.problem else self._interval):
                former, self.problem = self.problem, await self._read()
                self._read_at = now
                if self.problem and self.problem != former:
                    _log.error("credentials of registries cannot be used", problem=self.problem)
        return self._auths

    async def _read(self) -> str:
        """Read the Secret; returns why it cannot be used."""
        where = f"Secret {self._namespace}/{self._name}"
        try:
            with withheld():
                secret = await self._client.get(SECRET, self._name, self._namespace)
            self._auths = parse_auths(secret.data.get(_KEY, b""), where)
        except NotFound:
            self._auths = {}
            return f"the {where} does not exist: create it, or correct registries.authSecret"
        except ApiError as exc:
            return f"the {where} cannot be read: {exc}"
        except ValueError as exc:
            return f"the key {_KEY} of the {where} {exc}"
        return ""


def required_permissions() -> tuple[Permission, ...]:
    """Permissions of this module. The Secret's name is in the configuration."""
    why = "reads the credentials of registries that registries.authSecret names"
    return (Permission(SECRET, ("get",), why, where=Where.HOME),)
