"""Label and field selectors of a request as one predicate on records."""

from collections.abc import Callable

from metal.apiserver.machinery import selectors, status
from metal.apiserver.machinery.records import Record
from metal.apiserver.machinery.resources import RequestContext

Filter = Callable[[Record], bool]

_FROM_KEY = frozenset({"metadata.name", "metadata.namespace"})


def parse_filter(ctx: RequestContext, labels: str, fields: str) -> Filter:
    """The predicate for the namespace and selectors of a request. Raises StatusError 400."""
    checks: list[Filter] = []
    if ctx.namespace:
        namespace = ctx.namespace
        checks.append(lambda record: record.key.namespace == namespace)
    if labels:
        checks.append(_label_check(labels))
    if fields:
        checks.append(_field_check(ctx, fields))
    if len(checks) == 1:
        return checks[0]
    return lambda record: all(check(record) for check in checks)


def _label_check(text: str) -> Filter:
    try:
        matches = selectors.labels(text)
    except selectors.BadSelector as refused:
        raise status.bad_request(str(refused)) from refused
    return lambda record: matches(record.labels)


def _field_check(ctx: RequestContext, text: str) -> Filter:
    try:
        matches = selectors.fields(text)
    except selectors.BadSelector as refused:
        raise status.bad_request(str(refused)) from refused
    named = {term.path for term in selectors.field_terms(text)}
    selectable = ctx.resource.strategy.selectable
    for name in sorted(named - _FROM_KEY - selectable):
        if selectable or ctx.resource.custom:
            raise status.bad_request(f"field label not supported: {name}")
        raise status.bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    if named <= _FROM_KEY:
        return lambda record: matches({"metadata": {"name": record.key.name, "namespace": record.key.namespace}})
    seen = ctx.resource.strategy.selected
    return lambda record: matches(seen(record.decode()))
