"""Which BMCs may use a BMCSecret: without this, the right to create a BMC would disclose the password of any BMCSecret
to an address of one's choice.

1. `allowedBMCs` of the BMCSecret, if set, names them; "*" allows all. Enrolment by DHCP sets it.
2. Otherwise the BMCSecret is bound to its first user, by the annotation `bound-to`, which the controllers write
   (`bind`) before a password is sent. BMCs that were connected before, by an earlier version or the Go operator, are
   its first users together. Else there must be exactly one user, and its object must have been created with the
   BMCSecret (`_OLDER`, `_YOUNGER`): an object that waits for a BMCSecret with a guessed name, that competes with
   another one, or that names an unused one later, is bound to nothing. A BMC that is connected with another
   BMCSecret may change to a new one, which exists and is not older than `_YOUNGER`.
3. Every other user is refused with the reason SecretNotAllowed; an administrator adds it to `allowedBMCs`.

A user is the name of a BMC, or `server/NAME` for a Server with `spec.bmc`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from metal.api.bmc import BMC, BMCSecret
from metal.api.kinds import Kinds
from metal.api.meta import ObjectMeta
from metal.api.server import Server
from metal.controllers.shared.problem import Problem
from metal.controllers.shared.scope import Context
from metal.kube.cache.informer import Informer
from metal.kube.meta import conditions
from metal.kube.meta.permissions import Permission

BY_SECRET = "bmc-secret"  # noqa: S105  an index
"""Index of BMCs, and of Servers with spec.bmc, by the name of their BMCSecret."""
NOT_BOUND = "SecretNotBound"
"""Reason of the Problem that `bind` may solve."""
NOT_ALLOWED = "SecretNotAllowed"
_EVERY = "*"
_OLDER = timedelta(seconds=60)
"""How much older than its BMCSecret an object may be to be bound: objects of one file are created within seconds."""
_YOUNGER = timedelta(minutes=10)
"""How much younger it may be: a roll-out that creates BMCSecrets first needs minutes, and later it is another one's."""
_MOST = 1000
"""Users that the annotation names; of more, those are allowed that were connected before."""


@dataclass(frozen=True)
class User:
    """An object that refers to a BMCSecret."""

    name: str
    created: datetime | None
    """When it was created; None if its BMC was connected with another BMCSecret, for it says nothing about this one."""
    connected: bool
    """Whether its BMC has accepted these credentials before."""
    changes: bool = False
    """Whether its BMC is connected with another BMCSecret, and is to use this one from now on."""


def user_of_bmc(bmc: BMC) -> User:
    """A BMC object. What only an authenticated request can read shows that it was connected.

    Earlier versions did not record with which BMCSecret.
    """
    status = bmc.status
    seen = status.manufacturer or status.model or status.serial_number or status.firmware_version or status.systems
    is_same = status.connected_secret in ("", bmc.spec.bmc_secret_ref.name)
    changes = not is_same and conditions.is_true(status.conditions, "Ready")
    created = bmc.metadata.creation_timestamp if is_same else None
    return User(bmc.metadata.name, created, bool(seen) and is_same, changes)


def user_of_server(server: Server) -> User:
    """A Server with spec.bmc."""
    status = server.status
    seen = status.manufacturer or status.model or status.serial_number or status.bios_version
    return User(f"server/{server.metadata.name}", server.metadata.creation_timestamp, bool(seen))


def refusal(user: User, secret: BMCSecret, annotation: str) -> Problem | None:
    """Why the user may not use the BMCSecret; None if it may."""
    name = secret.metadata.name
    allowed, bound = secret.allowed_bmcs, _bound(secret.metadata, annotation)
    if allowed:
        if user.name in allowed or _EVERY in allowed:
            return None
        text = f"allowedBMCs of BMCSecret {name} does not name {user.name}: add it, or use another BMCSecret"
        return Problem(NOT_ALLOWED, text)
    if user.name in bound or (user.connected and (not bound or _EVERY in bound)):
        return None
    if not bound:
        return Problem(NOT_BOUND, f"BMCSecret {name} is not bound to {user.name} yet")
    return _not_allowed(name, bound, user.name)


async def bind(
    context: Context, secrets: Informer[BMCSecret], users: Iterable[User], secret: BMCSecret, annotation: str
) -> Problem | None:
    """Bind an unbound BMCSecret to its first users; why that is not possible. Raises ApiError."""
    if secret.allowed_bmcs or _bound(secret.metadata, annotation):
        return None
    found = sorted(users, key=lambda user: user.name)
    first = [user for user in found if user.connected] or found
    if not first:
        return None
    if not first[0].connected and (len(first) > 1 or not _belongs(first[0], secret, context.clock())):
        return _not_allowed(secret.metadata.name, [], *(user.name for user in first))
    names = _EVERY if len(first) > _MOST else ",".join(user.name for user in first)
    meta = {"annotations": {annotation: names}, "resourceVersion": secret.metadata.resource_version}
    kind = context.kinds.bmc_secret
    secrets.observe(await context.client.patch(kind, secret.metadata.name, {"metadata": meta}))
    return None


def is_bound(secret: BMCSecret, annotation: str) -> bool:
    """Whether it is decided who may use the BMCSecret."""
    return bool(secret.allowed_bmcs or _bound(secret.metadata, annotation))


def users_of(name: str, bmcs: Informer[BMC], servers: Informer[Server]) -> list[User]:
    """All users of a BMCSecret."""
    return [
        *map(user_of_bmc, bmcs.by_index(BY_SECRET, name)), *map(user_of_server, servers.by_index(BY_SECRET, name))
    ]  # fmt: skip


def bmc_index(bmc: BMC) -> Iterable[str]:
    """Index of BMCs."""
    return (bmc.spec.bmc_secret_ref.name,)


def server_index(server: Server) -> Iterable[str]:
    """Index of Servers."""
    inline = server.spec.bmc if server.spec.bmc_ref is None else None
    return (inline.bmc_secret_ref.name,) if inline is not None else ()


def _belongs(user: User, secret: BMCSecret, now: datetime) -> bool:
    """Whether object and BMCSecret were created together, or a connected BMC changes to a new BMCSecret."""
    created, since = secret.metadata.creation_timestamp, now if user.changes else user.created
    return created is not None and since is not None and -_OLDER <= since - created <= _YOUNGER


def _bound(meta: ObjectMeta, annotation: str) -> list[str]:
    return [name for name in meta.annotations.get(annotation, "").split(",") if name]


def _not_allowed(secret: str, bound: list[str], *users: str) -> Problem:
    why = (
        f"BMCSecret {secret} is bound to {', '.join(bound[:10])}" if bound
        else f"BMCSecret {secret} does not say which BMC may use it"
    )  # fmt: skip
    todo = f"list all BMCs that may use it in allowedBMCs of the BMCSecret{_command(secret, [*bound, *users])}"
    return Problem(NOT_ALLOWED, f"{why}, so no password is sent for {', '.join(users[:10])}: {todo}")


def _command(secret: str, names: list[str]) -> str:
    """The command that allows these users; none where it would not name all of them."""
    if len(names) > 10 or _EVERY in names:
        return ""
    body = msgspec.json.encode({"allowedBMCs": names}).decode()
    return f": kubectl patch bmcsecrets {secret} --type merge -p '{body}'"


def required_permissions(kinds: Kinds) -> tuple[Permission, ...]:
    """Permissions of this module."""
    return (Permission(kinds.bmc_secret, ("patch",), "binds a BMCSecret to the BMCs that use it"),)
