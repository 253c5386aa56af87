"""Validates the Ignition that a boot configuration names, and says how far that was possible."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from metal.api.claim import ServerBootConfiguration
from metal.api.core import SECRET, Secret
from metal.boot.butane import Butane
from metal.boot.errors import ButaneUnavailable, IgnitionError
from metal.boot.ignition import is_validated
from metal.controllers.bootconfig.findings import ERROR, PENDING, READY, Finding, is_ready
from metal.controllers.bootconfig.lookups import Lookups
from metal.controllers.bootconfig.scope import Memo
from metal.kube.client.errors import Forbidden, NotFound
from metal.kube.client.protocol import Client
from metal.kube.client.withheld import withheld
from metal.kube.meta.objects import Key
from metal.machineapi.bootserver.bootable import UserData, ignition_of
from metal.machineapi.bootserver.settings import BootSettings

_IGNITION = "IgnitionValidation"


class UserDataCheck:
    """Reads the Secret, and remembers which version of it was accepted."""

    def __init__(self, client: Client, settings: BootSettings) -> None:
        self._client, self._settings = client, settings
        self._butane, self._lookups = Butane(settings.butane), Lookups[UserData]()

    async def find(self, key: Key, config: ServerBootConfiguration, memo: Memo, wake: Callable[[], None]) -> Finding:
        """What is known of the Ignition. While it is converted, Pending; then `wake` is called. Raises ApiError."""
        ref, retry = config.spec.ignition_secret_ref, self._settings.retry
        if ref is None:
            return Finding(READY, "NoIgnition", "the boot configuration has no Ignition", _IGNITION)
        try:
            with withheld():
                secret = await self._client.get(SECRET, ref.name, config.metadata.namespace)
            found = await self._accept(key, secret, memo, wake)
            return found or _converting(config)
        except NotFound:
            message = f"the Secret {ref.name} does not exist in namespace {config.metadata.namespace}"
            return Finding(ERROR, "SecretMissing", message, _IGNITION, retry)
        except Forbidden:
            return Finding(ERROR, "SecretForbidden", _forbidden(ref.name, config), _IGNITION, retry)
        except ButaneUnavailable as exc:
            if exc.transient:
                return replace(_converting(config), recheck_after=retry)
            return Finding(ERROR, "ButaneUnavailable", f"Secret {ref.name}: {exc}", _IGNITION, retry)
        except IgnitionError as exc:
            return Finding(ERROR, "ValidationFailed", f"Secret {ref.name}: {exc}", _IGNITION, retry)

    async def _accept(self, key: Key, secret: Secret, memo: Memo, wake: Callable[[], None]) -> Finding | None:
        version, name = (secret.metadata.uid, secret.metadata.resource_version), secret.metadata.name
        if memo.ignition is not None and memo.ignition[0] == version:
            return memo.ignition[1]
        work = partial(ignition_of, secret, self._butane)
        data = await self._lookups.start_or_join(str(key), version, work, wake)
        if data is None:
            return None
        finding = self._accepted(name, data)
        memo.ignition = (version, finding)
        return finding

    def _accepted(self, name: str, data: UserData) -> Finding:
        poll, warnings = self._settings.secret_poll, f"; butane warns: {data.warnings}" if data.warnings else ""
        if is_validated(data.version):
            return Finding(READY, "Valid", f"the Ignition in Secret {name} is valid{warnings}", _IGNITION, poll)
        message = (
            f"the Ignition in Secret {name} has spec version {data.version} and is served as it is, not validated: the "
            "image must have an Ignition that reads it"
        )
        return Finding(READY, "NotValidated", message, _IGNITION, poll, validated=False)

    def forget(self, key: Key) -> None:
        """The boot configuration does not exist any more."""
        self._lookups.drop(str(key))


def _converting(config: ServerBootConfiguration) -> Finding:
    """A readiness that was reported stays: a machine may be booting, and the boot server validates what it serves."""
    state = READY if is_ready(config) else PENDING
    return Finding(state, "Converting", "butane to convert the Ignition", _IGNITION, validated=False)


def _forbidden(name: str, config: ServerBootConfiguration) -> str:
    namespace = config.metadata.namespace
    return (
        f"the manager may not read the Secret {name} in namespace {namespace}: allow it with a RoleBinding there "
        "(docs/rbac.md)"
    )
