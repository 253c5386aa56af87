"""Compares the network interfaces of a discovery report with those that the BMC shows, before they are recorded.

A report with an interface that the BMC does not show may have been sent by another machine on the boot network. It is
not used: the server enters Error with both lists, and an administrator discovers it again, or accepts the reported
interfaces where the BMC lists its own incompletely. Accepted ones are recorded as known in band and identify nothing.
"""

from collections.abc import Mapping

from metal.api.names import ACCEPT_INTERFACES, OPERATION
from metal.controllers.server.reasons import ConditionType, Reason
from metal.controllers.server.scope import Scope
from metal.kube.controller.controller import Requeue
from metal.kube.meta.conditions import is_true
from metal.machine import interfaces
from metal.machine.report import network_interfaces, usb_macs

_MOST = 1000
"""Characters of a message."""


def are_of_unknown_source(scope: Scope) -> bool:
    """True when an earlier version recorded the interfaces, so that it is unknown which the BMC shows."""
    return any(not nic.source for nic in scope.status.network_interfaces)


def check(scope: Scope, report: Mapping[str, object]) -> Requeue | None:
    """Record the interfaces; Error with both lists when the report has one that the BMC does not show."""
    known, reported = scope.status.network_interfaces, network_interfaces(report)
    if interfaces.foreign(known, reported, usb_macs(report)):
        return _mismatch(scope, interfaces.listed(known), interfaces.listed(reported))
    _record(scope, report)
    return None


def accept(scope: Scope, report: Mapping[str, object]) -> None:
    """Record the interfaces of the report that was refused, on the decision of an administrator."""
    _record(scope, report)
    text = f"accepted as known in band: {interfaces.listed(network_interfaces(report))}"
    scope.record_event("InterfacesAccepted", text[:_MOST])


def _record(scope: Scope, report: Mapping[str, object]) -> None:
    known = scope.status.network_interfaces
    scope.set(network_interfaces=interfaces.with_report(known, network_interfaces(report)))
    if is_true(scope.status.conditions, ConditionType.IDENTITY_MISMATCH):
        text = "the report has no network interface other than those that the BMC shows or that were accepted"
        scope.condition(ConditionType.IDENTITY_MISMATCH, False, "InterfacesMatch", text)


def _mismatch(scope: Scope, shown: str, reported: str) -> Requeue:
    annotation = f"{scope.context.kinds.key(OPERATION)}={ACCEPT_INTERFACES}"
    message = (
        "the report of the probe has network interfaces that the BMC does not show, so another machine may have sent "
        f"it. The BMC shows: {shown[: _MOST // 2]}. The report has: {reported[: _MOST // 2]}. Check which machine "
        "answered; if all of these interfaces belong to this server, accept them: "
        f"kubectl annotate servers {scope.name} {annotation}"
    )
    scope.condition(ConditionType.IDENTITY_MISMATCH, True, "ForeignInterfaces", message)
    return scope.fail(Reason.IDENTITY_MISMATCH, message)
