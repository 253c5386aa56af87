"""ServiceAccounts as users: issues their tokens and authenticates requests by token."""

import hashlib
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from metal.apiserver.auth import access
from metal.apiserver.auth.jwt import Signer
from metal.apiserver.auth.reviews import AUTHENTICATION, review, user_info
from metal.apiserver.machinery import metadata
from metal.apiserver.machinery.causes import Cause, invalid
from metal.apiserver.machinery.records import SERVICE_ACCOUNTS, ObjectKey, Record, ResourceKey
from metal.apiserver.machinery.resources import RequestContext, Resource
from metal.apiserver.machinery.status import Who, bad_request, conflict, not_found
from metal.apiserver.machinery.status import invalid as refused
from metal.apiserver.machinery.users import User
from metal.apiserver.storage.store import Store
from metal.kube.meta.clock import Clock, timestamp

Obj = dict[str, Any]

AUDIENCE = "https://kubernetes.default.svc"
"""Issuer of the tokens, and the audience of this API."""
SECRETS = ResourceKey("", "secrets")
_LIFE, _SHORTEST, _LONGEST = 3600, 600, 1 << 32
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_KEPT = 1_000
"""Maximum of tokens whose verified claims are remembered, by digest."""


class TokenRefusedError(Exception):
    """A token was issued here and is no longer valid; the message says why."""


class Authenticated(NamedTuple):
    """The user of a token, and the requested audiences for which it is valid."""

    user: User
    audiences: tuple[str, ...]


StaticTokens = Callable[[str], User | None]


class Accounts:
    """Issues tokens of ServiceAccounts and authenticates them against the accounts that exist at that time.

    static: finds the user of other tokens, such as those of a file.
    """

    def __init__(self, store: Store, clock: Clock, signer: Signer, rng: random.Random) -> None:
        self._store, self._clock, self._signer, self._rng = store, clock, signer, rng
        self._known: OrderedDict[bytes, Obj] = OrderedDict()
        self.static: StaticTokens = lambda token: None

    def resources(self) -> tuple[Resource, Resource]:
        """TokenRequest, which is a subresource of serviceaccounts, and TokenReview."""
        return (
            review(AUTHENTICATION, "TokenRequest", self._issue, namespaced=True),
            review(AUTHENTICATION, "TokenReview", self._review),
        )

    def authenticate(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Authenticated | None:
        """The user of a token; None for an unknown token. Raises TokenRefusedError, TokenError."""
        if (user := self.static(token)) is not None:
            return Authenticated(user, tuple(audiences))
        claims = self._claims(token)
        return None if claims is None else self._checked(claims, audiences)

    def _claims(self, token: str) -> Obj | None:
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._known.get(digest)
        if claims is None:
            claims = self._signer.verify(token)
            if claims is None or claims.get("iss") != AUDIENCE:
                return None
            self._known[digest] = claims
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return claims

    def _checked(self, claims: Obj, audiences: Sequence[str]) -> Authenticated:
        if self._clock().timestamp() >= claims["exp"]:
            raise TokenRefusedError("service account token has expired")
        fitting = tuple(audience for audience in audiences if audience in claims["aud"])
        if not fitting:
            listed = " ".join(f'"{audience}"' for audience in claims["aud"])
            raise TokenRefusedError(f"token audiences [{listed}] is invalid for the target audiences")
        about = claims["kubernetes.io"]
        space, name, uid = about["namespace"], about["serviceaccount"]["name"], about["serviceaccount"]["uid"]
        self._check_living(SERVICE_ACCOUNTS, space, name, uid, "service account")
        if (bound := about.get("secret")) is not None:
            self._check_living(SECRETS, space, bound["name"], bound["uid"], "secret")
        user, groups = access.service_account(space, name)
        extra = ((_CREDENTIAL, (f"JTI={claims['jti']}",)),)
        return Authenticated(User(user, uid, groups, extra), fitting)

    def _check_living(self, resource: ResourceKey, space: str, name: str, uid: str, what: str) -> None:
        record = self._store.get(ObjectKey(resource, space, name))
        if record is None:
            raise TokenRefusedError(f'{what} "{name}" not found')
        if record.uid != uid:
            raise TokenRefusedError(f"{what} UID ({record.uid}) does not match claim ({uid})")
        if record.deleting:
            raise TokenRefusedError(f"{what} {space}/{name} has been deleted")

    def _issue(self, ctx: RequestContext, obj: Obj) -> Obj:
        account = self._store.get(ObjectKey(SERVICE_ACCOUNTS, ctx.namespace, ctx.name))
        meta = obj["metadata"]
        for field, wanted in (("name", ctx.name), ("namespace", ctx.namespace)):
            if meta.get(field, wanted) != wanted:
                message = f"must match the service account {field} if specified"
                raise refused(_request(ctx.name), [invalid(f"metadata.{field}", meta[field], message)])
        if account is None:
            raise not_found(ctx.who)
        if meta.get("uid", account.uid) != account.uid:
            message = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
            raise conflict(Who(AUTHENTICATION, "TokenRequest", name=ctx.name), f"{message} ({account.uid})")
        spec = _spec(obj)
        if causes := _check_seconds(spec["expirationSeconds"]):
            raise refused(_request(""), causes)
        return self._issued(ctx, account, obj, spec)

    def _issued(self, ctx: RequestContext, account: Record, obj: Obj, spec: Obj) -> Obj:
        now = self._clock()
        claims = self._new_claims(ctx, account, spec, int(now.timestamp()))
        born = timestamp(now)
        identity = {"name": ctx.name, "namespace": ctx.namespace, "uid": account.uid, "creationTimestamp": born}
        ends = datetime.fromtimestamp(claims["exp"], UTC)
        status = {"token": self._signer.sign(claims), "expirationTimestamp": timestamp(ends)}
        return {**obj, "metadata": {**obj["metadata"], **identity}, "spec": spec, "status": status}

    def _new_claims(self, ctx: RequestContext, account: Record, spec: Obj, now: int) -> Obj:
        about: Obj = {"namespace": ctx.namespace, "serviceaccount": {"name": ctx.name, "uid": account.uid}}
        if (bound := spec.get("boundObjectRef")) is not None:
            about["secret"] = self._bound(ctx, bound)
        return {
            "aud": spec["audiences"],
            "exp": now + spec["expirationSeconds"],
            "iat": now,
            "iss": AUDIENCE,
            "jti": metadata.uid(self._rng),
            "kubernetes.io": about,
            "nbf": now,
            "sub": access.service_account(ctx.namespace, ctx.name)[0],
        }

    def _bound(self, ctx: RequestContext, ref: Obj) -> Obj:
        if (ref.get("apiVersion"), ref.get("kind")) != ("v1", "Secret"):
            version = str(ref.get("apiVersion", ""))
            message = f"{version if '/' in version else '/' + version}, Kind={ref.get('kind', '')}"
            raise bad_request(f"cannot bind token to object of type {message}")
        secret = self._store.get(ObjectKey(SECRETS, ctx.namespace, str(ref.get("name", ""))))
        if secret is None:
            raise not_found(Who("", "secrets", name=str(ref.get("name", ""))))
        if ref.get("uid") and ref["uid"] != secret.uid:
            message = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record."
            why = f"{message} The object might have been deleted and then recreated"
            raise conflict(Who("", "Secret", name=secret.key.name), why)
        return {"name": secret.key.name, "uid": secret.uid}

    def _review(self, ctx: RequestContext, obj: Obj) -> Obj:
        spec = obj.get("spec") or {}
        token, audiences = spec.get("token"), spec.get("audiences") or [AUDIENCE]
        if not isinstance(token, str) or not token:
            raise bad_request("token is required for TokenReview in authentication")
        try:
            found = self.authenticate(token, audiences)
        except TokenRefusedError as why:
            return {**obj, "status": {"user": {}, "error": f"[invalid bearer token, {why}]"}}
        if found is None:
            return {**obj, "status": {"user": {}, "error": "invalid bearer token"}}
        status = {"authenticated": True, "user": user_info(found.user), "audiences": list(found.audiences)}
        return {**obj, "status": status}


def _request(name: str) -> Who:
    return Who(AUTHENTICATION, "tokenrequests", "TokenRequest", name)


def _spec(obj: Obj) -> Obj:
    spec = obj.get("spec") or {}
    audiences, seconds, bound = spec.get("audiences") or [AUDIENCE], spec.get("expirationSeconds"), None
    if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
        raise bad_request("spec.audiences: expected a list of texts")
    seconds = _LIFE if seconds is None else seconds
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise bad_request("spec.expirationSeconds: expected a whole number")
    bound = spec.get("boundObjectRef")
    if bound is not None and not isinstance(bound, dict):
        raise bad_request("spec.boundObjectRef: expected an object")
    return {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound}


def _check_seconds(seconds: int) -> list[Cause]:
    if seconds < _SHORTEST:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
