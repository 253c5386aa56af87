"""Keeps one event subscription on the BMC, so that it is polled less often while its events arrive.

The destination is a URL of the events listener with a secret token; the status holds only the token's digest, which
is written before the subscription is created, so no event can arrive whose token is unknown. The subscription's
context names the BMC object: after a crash, or a move to another API, the manager finds its own subscription by
context or token and leaves those of other clients alone. While events arrive nothing is requested; a BMC that was
silent for most of `event_heartbeat` is asked whether the subscription still exists, and for a test event. The
condition Events reports the result. A BMC without events is only polled: the subscription is an optimization, never a
requirement.
"""

import asyncio

import structlog

from metal.bmc.errors import BMCError, BMCNotSupported
from metal.bmc.events import Subscription
from metal.bmc.pool import BMC, BMCEndpoint
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.access.bmc_endpoint import endpoint_for_bmc
from metal.controllers.shared.access.sessions import explain
from metal.controllers.shared.bmc_events import received_recently
from metal.controllers.shared.condition_types import EVENTS
from metal.kube.controller.controller import Result
from metal.kube.meta.conditions import is_true
from metal.machine.boot_window import digest

_log = structlog.get_logger(__name__)


async def ensure(scope: Scope) -> Result | None:
    """Create or check the subscription as configured, and report whether events arrive."""
    if not scope.deps.settings.event_url:
        await _disable(scope)
        return None
    try:
        if _is_due(scope):
            await scope.contact(_check)
            scope.memo.subscribed_at = asyncio.get_running_loop().time()
    except BMCNotSupported as exc:
        scope.memo.subscribed_at = asyncio.get_running_loop().time()
        scope.condition(EVENTS, False, exc.reason, f"{exc} The BMC is polled instead")
    except BMCError as exc:
        scope.report(EVENTS, False, "SubscriptionFailed", f"the event subscription failed: {explain(exc)}")
    else:
        _report(scope)
    return None


async def delete_subscription(scope: Scope) -> None:
    """Remove the subscription within the time for a logout; failures are only logged."""
    link = scope.status.events_subscription_link
    found = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    endpoint = found if isinstance(found, BMCEndpoint) else scope.memo.bmc_endpoint
    if not link or endpoint is None:
        return
    try:
        async with asyncio.timeout(scope.deps.settings.logout_timeout):
            await scope.deps.pool.get(endpoint).unsubscribe(link)
    except (TimeoutError, BMCError, ValueError) as exc:
        _log.warning("event subscription not removed", bmc=scope.name, error=str(exc) or "no answer in time")


def subscription_context(scope: Scope) -> str:
    """Context that marks the manager's own subscriptions on the BMC; others are never changed."""
    return f"metal-operator {scope.obj.metadata.uid}"


def destination_prefix(scope: Scope) -> str:
    """The destination without the token."""
    return f"{scope.deps.settings.event_url}/events/{scope.name}/"


def _is_due(scope: Scope) -> bool:
    """False while events arrive; otherwise True once in a heartbeat, and immediately in a new process."""
    settings = scope.deps.settings
    if received_recently(scope.status, scope.now, settings.event_heartbeat):
        return False
    silent = asyncio.get_running_loop().time() - scope.memo.subscribed_at
    return silent >= settings.event_heartbeat * 0.8


async def _check(scope: Scope, bmc: BMC) -> None:
    link = scope.status.events_subscription_link
    found = await bmc.subscription(link) if link else None
    if found is None or not _is_ours(scope, found):
        await _find_or_create(scope, bmc)
    try:
        await bmc.send_test_event()
    except BMCError as exc:
        _log.debug("no test event", bmc=scope.name, error=str(exc))


async def _find_or_create(scope: Scope, bmc: BMC) -> None:
    """Adopt the subscription of a former process, or create one. The token's digest is written first."""
    link = ""
    for known in await bmc.subscriptions():
        if known.context != subscription_context(scope) and not _has_our_token(scope, known):
            continue
        if not link and known.destination and _is_ours(scope, known):
            link = known.uri
        else:
            await bmc.unsubscribe(known.uri)
    if not link:
        token = scope.deps.new_token()
        scope.set(event_token_digest=digest(token), events_subscription_link="", last_event_time=None)
        await scope.commit()
        link = await bmc.subscribe(destination_prefix(scope) + token, subscription_context(scope))
        scope.event("Normal", "Subscribed", f"the BMC sends its events to {destination_prefix(scope)}")
    scope.set(events_subscription_link=link)


def _is_ours(scope: Scope, known: Subscription) -> bool:
    """Whether it has the expected context and token; some BMCs do not show the destination."""
    if known.context != subscription_context(scope):
        return False
    token = known.destination.removeprefix(destination_prefix(scope))
    return not known.destination or digest(token) == scope.status.event_token_digest


def _has_our_token(scope: Scope, known: Subscription) -> bool:
    """Whether it has the expected token: `metalctl move` gives the BMC object another UID, hence another context."""
    expected: str = scope.status.event_token_digest
    return digest(known.destination.rpartition("/")[2]) == expected


def _report(scope: Scope) -> None:
    settings = scope.deps.settings
    if received_recently(scope.status, scope.now, settings.event_max_age):
        scope.report(
            EVENTS, True, "EventsArrive", f"events arrive; polled {settings.event_slowdown:g} times less often"
        )
    elif is_true(scope.status.conditions, EVENTS):
        text = (
            f"no event for {settings.event_max_age:g} s: check that the BMC can reach {settings.event_url}. "
            "The BMC is polled instead"
        )
        scope.report(EVENTS, False, "EventsStopped", text)
    elif scope.status.events_subscription_link and scope.status.last_event_time is None:
        text = f"subscribed; no event received yet. The BMC must be able to reach {settings.event_url}"
        scope.condition(EVENTS, False, "NoEventsYet", text)


async def _disable(scope: Scope) -> None:
    """Events are not configured: remove the subscription and the condition."""
    if scope.status.events_subscription_link:
        await delete_subscription(scope)
        conditions = tuple(c for c in scope.status.conditions if c.type != EVENTS)
        scope.set(events_subscription_link="", event_token_digest="", last_event_time=None, conditions=conditions)
