"""Has the BMC send its events to us: one subscription, found again after a crash, looked at while it is silent."""

import asyncio

import structlog

from metal.bmc.errors import BMCError, BMCNotSupported
from metal.bmc.protocols import BMC, BMCEndpoint, Subscription
from metal.controllers.bmc.contact import bounded
from metal.controllers.bmc.scope import Scope
from metal.controllers.shared.bmc_endpoint import endpoint_for_bmc
from metal.controllers.shared.bmc_events import flowing
from metal.controllers.shared.sessions import explain
from metal.kube.controller.controller import Result
from metal.kube.meta.conditions import is_true
from metal.machine.boot_window import digest

_log = structlog.get_logger(__name__)
CONDITION = "Events"


async def subscribe(scope: Scope) -> Result | None:
    """Keep the subscription as configured, and say whether events come. Without them the BMC is only polled."""
    if not scope.deps.settings.event_url:
        await _give_up(scope)
        return None
    try:
        if _is_due(scope):
            await bounded(scope, _keep)
            scope.memo.subscribed_at = asyncio.get_running_loop().time()
    except BMCNotSupported as exc:
        scope.memo.subscribed_at = asyncio.get_running_loop().time()
        scope.condition(CONDITION, False, exc.reason, f"{exc} It is polled")
    except BMCError as exc:
        scope.report(CONDITION, False, "SubscriptionFailed", f"no events are subscribed to: {explain(exc)}")
    else:
        _tell(scope)
    return None


async def withdraw(scope: Scope) -> None:
    """Remove the subscription, within the time for a logout; a BMC that does not play along forgets it some day."""
    link = scope.status.events_subscription_link
    found = endpoint_for_bmc(scope.obj, scope.endpoint, scope.secret, scope.deps.defaults)
    access = found if isinstance(found, BMCEndpoint) else scope.memo.access
    if not link or access is None:
        return
    try:
        async with asyncio.timeout(scope.deps.settings.logout_timeout):
            await scope.deps.pool.get(access).unsubscribe(link)
    except (TimeoutError, BMCError, ValueError) as exc:
        _log.warning("event subscription was not removed", bmc=scope.name, error=str(exc) or "no answer in time")


def context_of(scope: Scope) -> str:
    """What marks our subscriptions on the BMC: others' are never touched."""
    return f"metal-operator {scope.obj.metadata.uid}"


def place_of(scope: Scope) -> str:
    """The destination without its secret part."""
    return f"{scope.deps.settings.event_url}/events/{scope.name}/"


def _is_due(scope: Scope) -> bool:
    """While events come, nothing has to be asked; else once in a heartbeat, and at once by a new process."""
    settings = scope.deps.settings
    if flowing(scope.status, scope.now, settings.event_heartbeat):
        return False
    silent = asyncio.get_running_loop().time() - scope.memo.subscribed_at
    return silent >= settings.event_heartbeat * 0.8


async def _keep(scope: Scope, bmc: BMC) -> None:
    link = scope.status.events_subscription_link
    found = await bmc.subscription(link) if link else None
    if found is None or not _is_ours(scope, found):
        await _renew(scope, bmc)
    try:
        await bmc.send_test_event()
    except BMCError as exc:
        _log.debug("no test event", bmc=scope.name, error=str(exc))


async def _renew(scope: Scope, bmc: BMC) -> None:
    """Take up the subscription of a former process, or make one. The token's digest is written down before."""
    link = ""
    for known in await bmc.subscriptions():
        if known.context != context_of(scope) and not _has_our_token(scope, known):
            continue
        if not link and known.destination and _is_ours(scope, known):
            link = known.uri
        else:
            await bmc.unsubscribe(known.uri)
    if not link:
        token = scope.deps.new_token()
        scope.set(event_token_digest=digest(token), events_subscription_link="", last_event_time=None)
        await scope.commit()
        link = await bmc.subscribe(place_of(scope) + token, context_of(scope))
        scope.event("Normal", "Subscribed", f"the BMC sends its events to {place_of(scope)}")
    scope.set(events_subscription_link=link)


def _is_ours(scope: Scope, known: Subscription) -> bool:
    """Whether it leads to us with the token that we know; some BMCs do not show where theirs lead."""
    if known.context != context_of(scope):
        return False
    token = known.destination.removeprefix(place_of(scope))
    return not known.destination or digest(token) == scope.status.event_token_digest


def _has_our_token(scope: Scope, known: Subscription) -> bool:
    """Whether it was made for this BMC before its object came here from another home, which gave it another UID."""
    expected: str = scope.status.event_token_digest
    return digest(known.destination.rpartition("/")[2]) == expected


def _tell(scope: Scope) -> None:
    settings = scope.deps.settings
    if flowing(scope.status, scope.now, settings.event_max_age):
        scope.report(CONDITION, True, "EventsArrive", f"events arrive; polled {settings.event_slowdown:g} times less")
    elif is_true(scope.status.conditions, CONDITION):
        text = (
            f"no event for {settings.event_max_age:g} s; check that the BMC reaches {settings.event_url}. It is polled"
        )
        scope.report(CONDITION, False, "EventsStopped", text)
    elif scope.status.events_subscription_link and scope.status.last_event_time is None:
        text = f"subscribed; no event has come yet. The BMC must reach {settings.event_url}"
        scope.condition(CONDITION, False, "NoEventsYet", text)


async def _give_up(scope: Scope) -> None:
    """No events are wanted any more."""
    if scope.status.events_subscription_link:
        await withdraw(scope)
        conditions = tuple(c for c in scope.status.conditions if c.type != CONDITION)
        scope.set(events_subscription_link="", event_token_digest="", last_event_time=None, conditions=conditions)
