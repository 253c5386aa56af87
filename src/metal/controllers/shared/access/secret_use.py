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

A user is the name of a BMC, or `server/NAME` for a Server with `spec.bmc`. A name is not the object: the annotation
`bound-uids` has the UIDs of the BMCSecret and of its users (`Bound`), so that an object that was created under the name
of a deleted one is refused. It is void with the UID of another BMCSecret: then the BMCSecret was restored or moved, its
users probably too, and the objects that have the names now are recorded. A name in `allowedBMCs` is not bound to a UID.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from metal.api.bmc import BMC, BMCSecret
from metal.api.kinds import Kinds
from metal.api.meta import Model, ObjectMeta
from metal.api.names import BOUND_TO, BOUND_UIDS
from metal.api.server import Server
from metal.controllers.shared.access.problem import Problem
from metal.controllers.shared.scope import Context
from metal.kube.cache.informer import Informer
from metal.kube.client.withheld import withheld
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
    uid: str
    created: datetime | None
    """When it was created; None if its BMC was connected with another BMCSecret, for it says nothing about this one."""
    connected: bool
    """Whether its BMC has accepted the credentials of this very BMCSecret before."""
    changes: bool = False
    """Whether its BMC is connected with another BMCSecret, and is to use this one from now on."""


class Bound(Model, frozen=True, kw_only=True):
    """The value of the annotation `bound-uids`, in JSON."""

    secret: str = ""
    """UID of the BMCSecret."""
    users: dict[str, str] = msgspec.field(default_factory=dict)
    """UIDs of the users that `bound-to` names, as far as they are known."""


def user_of_bmc(bmc: BMC, secret: BMCSecret | None) -> User:
    """A BMC object. What only an authenticated request can read shows that it was connected."""
    status = bmc.status
    seen = status.manufacturer or status.model or status.serial_number or status.firmware_version or status.systems
    same_name = status.connected_secret in ("", bmc.spec.bmc_secret_ref.name)
    is_same = same_name and _is_uid_of(secret, status.connected_secret_uid)
    changes = not is_same and conditions.is_true(status.conditions, "Ready")
    created = bmc.metadata.creation_timestamp if is_same else None
    return User(bmc.metadata.name, bmc.metadata.uid, created, bool(seen) and is_same, changes)


def user_of_server(server: Server, secret: BMCSecret | None) -> User:
    """A Server with spec.bmc."""
    status = server.status
    seen = status.manufacturer or status.model or status.serial_number or status.bios_version
    is_same = _is_uid_of(secret, status.connected_secret_uid)
    changes = not is_same and conditions.is_true(status.conditions, "BMCReachable")
    created = server.metadata.creation_timestamp if is_same else None
    return User(f"server/{server.metadata.name}", server.metadata.uid, created, bool(seen) and is_same, changes)


def _is_uid_of(secret: BMCSecret | None, connected: str) -> bool:
    """Whether a BMC was connected with this BMCSecret; earlier versions did not record its UID."""
    return not connected or (secret is not None and secret.metadata.uid == connected)


def refusal(user: User, secret: BMCSecret, annotation: str) -> Problem | None:
    """Why the user may not use the BMCSecret; None if it may."""
    name = secret.metadata.name
    allowed, bound = secret.allowed_bmcs, _bound(secret.metadata, annotation)
    if allowed:
        if user.name in allowed or _EVERY in allowed:
            return None
        text = f"allowedBMCs of BMCSecret {name} does not name {user.name}: add it, or use another BMCSecret"
        return Problem(NOT_ALLOWED, text)
    if user.name in bound:
        known = _uids(secret.metadata, annotation).get(user.name, user.uid)
        return None if known == user.uid else _recreated(name, user)
    if user.connected and (not bound or _EVERY in bound):
        return None
    if not bound:
        return Problem(NOT_BOUND, f"BMCSecret {name} is not bound to {user.name} yet")
    return _not_allowed(name, bound, user.name)


async def bind(
    context: Context, secrets: Informer[BMCSecret], users: Iterable[User], secret: BMCSecret, annotation: str
) -> Problem | None:
    """Bind an unbound BMCSecret to its first users; why that is not possible. Raises ApiError."""
    if is_bound(secret, annotation):
        return None
    bound, found = _bound(secret.metadata, annotation), sorted(users, key=lambda user: user.name)
    first = [user for user in found if user.name in bound or (not bound and user.connected)]
    if not first and not bound:
        first = found
        if first and (len(first) > 1 or not _belongs(first[0], secret, context.clock())):
            return _not_allowed(secret.metadata.name, [], *(user.name for user in first))
    if first:
        await _write(context, secrets, secret, annotation, first)
    return None


async def _write(
    context: Context, secrets: Informer[BMCSecret], secret: BMCSecret, annotation: str, users: list[User]
) -> None:
    """Add these users to the annotations, if they are missing there."""
    meta = secret.metadata
    names = ",".join(_bound(meta, annotation) or [user.name for user in users])
    names = _EVERY if len(users) > _MOST else names
    uids = {} if names == _EVERY else {user.name: user.uid for user in users} | _uids(meta, annotation)
    value = msgspec.json.encode(Bound(secret=meta.uid, users=uids)).decode()
    notes = {annotation: names, _uids_key(annotation): value}
    if all(meta.annotations.get(key) == note for key, note in notes.items()):
        return
    body = {"metadata": {"annotations": notes, "resourceVersion": meta.resource_version}}
    with withheld():
        secrets.observe(await context.client.patch(context.kinds.bmc_secret, meta.name, body))


def is_bound(secret: BMCSecret, annotation: str) -> bool:
    """Whether it is decided, and recorded by UID, who may use the BMCSecret."""
    bound = _bound(secret.metadata, annotation)
    recorded = _uids(secret.metadata, annotation)
    return bool(secret.allowed_bmcs or (bound and (_EVERY in bound or all(name in recorded for name in bound))))


def users_of(secret: BMCSecret, bmcs: Informer[BMC], servers: Informer[Server]) -> list[User]:
    """All users of a BMCSecret."""
    name = secret.metadata.name
    return [
        *(user_of_bmc(bmc, secret) for bmc in bmcs.by_index(BY_SECRET, name)),
        *(user_of_server(server, secret) for server in servers.by_index(BY_SECRET, name)),
    ]


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


def _uids_key(annotation: str) -> str:
    return annotation.removesuffix(BOUND_TO) + BOUND_UIDS


def _uids(meta: ObjectMeta, annotation: str) -> dict[str, str]:
    """The recorded UIDs of users by name; none when they were recorded for another BMCSecret."""
    try:
        bound = msgspec.json.decode(meta.annotations.get(_uids_key(annotation), "{}"), type=Bound)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return {}
    return bound.users if bound.secret == meta.uid else {}


def _recreated(secret: str, user: User) -> Problem:
    return Problem(
        NOT_ALLOWED,
        f"BMCSecret {secret} is bound to an earlier object {user.name}, which was deleted; no password is sent for the "
        f"one that was created since. If it is the same BMC, list {user.name} in allowedBMCs of the BMCSecret",
    )


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
    return (Permission(kinds.bmc_secret, ("patch",), "binds a BMCSecret to its BMCs, and keeps their pins"),)
