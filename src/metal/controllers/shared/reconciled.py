"""Commits a pass that the API refused: what it learned, and the condition Reconciled=False with the API's words.

A pass sends requests to the API before its status is written: it creates Secrets, patches references, writes boot
configurations. When one is refused (a quota, a missing permission, an admission webhook) the exception ends the pass,
and the controller repeats it with a backoff. Without a commit, no condition would say why nothing happens.

`reporting` wraps the body of a pass. At its end it commits; after a refusal it commits what may be kept
(`StatusScope.keep_learned`) with the condition, records one Event when the condition changes, and raises the error
again. `refusals` does the same for steps after which nothing is to be committed, such as those of a deletion. A
Conflict is no refusal: the object was written meanwhile, and the next pass sees it. An API that is overloaded or away
(429, 5xx, no answer) is reported only when it has failed SEVERAL passes in a row, for PATIENCE: the report is another
request to it. The first pass that succeeds sets Reconciled=True.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from metal.controllers.shared.condition_types import RECONCILED
from metal.controllers.shared.scope import StatusScope
from metal.kube.client.errors import ApiError, BadRequest, Conflict, Invalid, TooManyRequests
from metal.kube.client.retrying import UNCERTAIN
from metal.kube.meta.conditions import find
from metal.kube.meta.objects import key_of

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?")
PATIENCE = 60.0
"""Seconds for which an API that is overloaded or away fails the passes of an object before that is reported."""
SEVERAL = 10
"""Passes that fail in a row before that is reported; the backoff repeats a pass that often in about PATIENCE."""
_LONGEST = 1000
"""Characters of the API's message; a webhook can answer with any text."""


@asynccontextmanager
async def reporting(scope: StatusScope[Any]) -> AsyncIterator[None]:
    """Commit at the end of the pass, also when the API refused a request. Raises the ApiError of the refusal."""
    async with refusals(scope):
        yield
        _succeeded(scope)
        await scope.commit()


@asynccontextmanager
async def refusals(scope: StatusScope[Any]) -> AsyncIterator[None]:
    """Commit only when the API refused a request. Raises the ApiError of the refusal."""
    try:
        yield
    except Conflict:
        raise
    except ApiError as exc:
        if not _may_pass(scope, exc):
            await _refused(scope, exc)
        raise


def _may_pass(scope: StatusScope[Any], exc: ApiError) -> bool:
    """Whether the API has not refused anything and may answer soon."""
    if not isinstance(exc, (TooManyRequests, *UNCERTAIN)):
        return False
    if scope.informer.get(key_of(scope.obj)) is None:
        return True  # deleted during this pass
    key, now = (scope.kind.kind, key_of(scope.obj)), asyncio.get_running_loop().time()
    since, times = scope.context.failing.get(key, (now, 0))
    scope.context.failing[key] = since, times + 1
    return now - since < PATIENCE or times + 1 < SEVERAL


def _succeeded(scope: StatusScope[Any]) -> None:
    scope.context.failing.pop((scope.kind.kind, key_of(scope.obj)), None)
    known = find(scope.status.conditions, RECONCILED)
    if known is not None and known.status == "False":
        scope.report(RECONCILED, True, "Reconciled", "the API accepts the requests of the controller again")


async def _refused(scope: StatusScope[Any], exc: ApiError) -> None:
    pending = scope.status
    scope.keep_learned()
    with suppress(ApiError):  # the refusal is raised, not this
        try:
            await _write(scope, exc)
        except (Invalid, BadRequest):  # what it learned is itself refused, so only the condition is written
            scope.discard()
            await _write(scope, exc)
    scope.status = pending


def refusal(exc: ApiError, request: str = "a request of the controller") -> tuple[str, str]:
    """Reason and message of a condition and an Event for a request that the API refused."""
    return exc.reason if _REASON.fullmatch(exc.reason) else "APIError", (
        f"the API refused {request}: {exc.message[:_LONGEST].rstrip('.')}. It is repeated until it succeeds: correct "
        "what the message names"
    )


async def _write(scope: StatusScope[Any], exc: ApiError) -> None:
    reason, message = refusal(exc)
    changed = scope.condition(RECONCILED, False, reason, message)
    await scope.commit()
    if changed:
        scope.event("Warning", reason, message)
