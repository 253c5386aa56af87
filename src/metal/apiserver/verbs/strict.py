"""Unknown and duplicate fields (fieldValidation), and warnings about finalizer names."""

from itertools import islice
from typing import Any

from metal.apiserver.machinery import status
from metal.apiserver.machinery.causes import MOST
from metal.apiserver.machinery.options import FieldValidation
from metal.apiserver.machinery.resources import RequestContext
from metal.apiserver.verbs import decoding
from metal.kube.meta.names import is_subdomain

Obj = dict[str, Any]

_PREFER = "prefer a domain-qualified finalizer name"
_WHY = "to avoid accidental conflicts with other finalizer writers"


def check(ctx: RequestContext, obj: Obj, *, patch: bool = False) -> None:
    """Warn about such fields, or refuse them: 400, and 422 when they come from a patch."""
    mode, resource = ctx.options.field_validation, ctx.resource
    if mode is FieldValidation.IGNORE:
        return
    names = resource.schema.unknown_fields(obj)
    unknown = (f'unknown field "{name}"' for name in (sorted(names) if resource.custom else names))
    found = [*ctx.duplicates, *islice(unknown, MOST)]
    if found and mode is FieldValidation.STRICT:
        if patch:
            why = f"strict decoding error: {', '.join(found)}"
            raise status.invalid(status.Who(), [decoding.refused_patch(resource, obj, why)])
        raise decoding.strict(resource, found)
    ctx.warnings.extend(found)


def warn_finalizers(ctx: RequestContext, obj: Obj, old: Obj | None) -> None:
    """Warn about new finalizers of a custom object that are not qualified by a domain."""
    if not ctx.resource.custom or ctx.subresource:
        return
    before = set(old["metadata"].get("finalizers", ()) if old else ())
    for name in sorted(set(obj["metadata"].get("finalizers", ())) - before):
        if "/" in name:
            continue
        message = (
            f"{_PREFER} including a path (/) {_WHY}" if "." in name and is_subdomain(name) else f"{_PREFER} {_WHY}"
        )
        ctx.warnings.append(f'metadata.finalizers: "{name}": {message}')
