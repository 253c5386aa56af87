"""Admission of x-kubernetes-validations: every rule compiles, gives the right type, and points at what there is."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.cel import static_check
from metal.apiserver.cel.rules import RuleError, known_functions, program
from metal.apiserver.cel.parser import NotUnderstoodError
from metal.apiserver.cel.signatures import DYN, Type
from metal.apiserver.machinery import causes
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.structural import Rule, compile_node

Obj = Mapping[str, Any]

_REASONS = (causes.DUPLICATE, causes.FORBIDDEN, causes.INVALID, causes.REQUIRED)
_BUILTINS = frozenset(
    (
        "size", "contains", "startsWith", "endsWith", "matches", "string", "int", "uint", "double", "bytes", "dyn",
        "type", "duration", "timestamp", "bool", "has", "all", "exists", "exists_one", "map", "filter", "getFullYear",
        "getMonth", "getDate", "getDayOfMonth", "getDayOfYear", "getDayOfWeek", "getHours", "getMinutes", "getSeconds",
        "getMilliseconds", "max", "min", "hasValue", "value", "orValue",
    )
)  # fmt: skip
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]")


def check_rules(schema: Obj, path: str, *, root: bool = False, apart: str = "") -> Iterator[Cause]:
    """What is wrong with the rules of one place.

    root: the schema is that of the whole object. apart: the list or map around it whose items cannot be told from
    each other across versions, if any.
    """
    entries = schema.get("x-kubernetes-validations") or ()
    if not entries:
        return
    kind = static_check.type_of(compile_node({**schema, "x-kubernetes-validations": []}), whole=root)
    for index, entry in enumerate(entries):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if not str(entry.get("rule") or "").strip():
            yield causes.required(f"{where}.rule", "rule is not specified")
            continue
        faults = list(_words(entry, where))
        yield from faults
        yield from _field_path(entry, schema, where)
        if not faults:
            yield from _rule(entry, kind, where, apart)
        yield from _message_expression(entry, kind, where)


def _words(entry: Obj, where: str) -> Iterator[Cause]:
    if (reason := entry.get("reason")) and reason not in _REASONS:
        yield causes.not_supported(f"{where}.reason", reason, _REASONS)
    message = str(entry.get("message") or "")
    if message and not message.strip():
        yield causes.invalid(f"{where}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield causes.invalid(f"{where}.message", message, "must not contain line breaks")
    elif "\n" in entry["rule"].strip() and not message:
        yield causes.required(f"{where}.message", "message must be specified if rule contains line breaks")


def _field_path(entry: Obj, schema: Obj, where: str) -> Iterator[Cause]:
    text = str(entry.get("fieldPath") or "")
    if "\n" in text:
        yield causes.invalid(f"{where}.fieldPath", text, "must not contain line breaks")
    if text and not _leads(text, schema):
        yield causes.invalid(f"{where}.fieldPath", text, "must be a valid path")


def _leads(text: str, schema: Any) -> bool:
    """Whether a path goes through properties and maps only, to the end."""
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return False
        place = (schema.get("properties") or {}).get(step[1] or step[2], schema.get("additionalProperties"))
        if not isinstance(place, Mapping):
            return False
        schema, at = place, step.end()
    return True


def _shown(entry: Obj) -> Any:
    """A rule as kube-apiserver repeats it: Go's names for its fields."""
    texts = {"Rule": "rule", "Message": "message", "MessageExpression": "messageExpression"}
    shown = {name: str(entry.get(key) or "") for name, key in texts.items()}
    rest = {"Reason": entry.get("reason"), "FieldPath": str(entry.get("fieldPath") or "")}
    return causes.Raw({**shown, **rest, "OptionalOldSelf": entry.get("optionalOldSelf")})


def _rule(entry: Obj, kind: Type, where: str, apart: str) -> Iterator[Cause]:
    rule, optional = str(entry["rule"]), entry.get("optionalOldSelf")
    fault, given = _compiled(rule, _variables(kind, optional=bool(optional)))
    if fault:
        yield causes.invalid(f"{where}.rule", _shown(entry), f"compilation failed: {fault}")
    elif given != "bool":
        yield causes.invalid(f"{where}.rule", _shown(entry), "cel expression must evaluate to a bool")
    uses_old = not fault and program(Rule(rule=rule)).uses_old
    if optional is not None and not uses_old:
        told = "may not be set if oldSelf is not used in rule"
        yield causes.invalid(f"{where}.optionalOldSelf", optional, told)
    if uses_old and apart:
        told = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
        yield causes.invalid(f"{where}.rule", rule, told)


def _message_expression(entry: Obj, kind: Type, where: str) -> Iterator[Cause]:
    text = str(entry.get("messageExpression") or "")
    if not text:
        return
    where = f"{where}.messageExpression"
    if not text.strip():
        yield causes.required(where, "messageExpression must be non-empty if specified")
        return
    fault, given = _compiled(text, _variables(kind, optional=bool(entry.get("optionalOldSelf"))))
    if fault:
        yield causes.invalid(where, _shown(entry), f"messageExpression compilation failed: {fault}")
    elif given != "string":
        yield causes.invalid(where, _shown(entry), "messageExpression must evaluate to a string")


def _variables(kind: Type, *, optional: bool) -> dict[str, Type]:
    return {"self": kind, "oldSelf": ("optional_type", kind) if optional else kind}


def _compiled(source: str, variables: Mapping[str, Type]) -> tuple[str, Type]:
    """What is wrong with an expression, and else its type."""
    try:
        program(Rule(rule=source))
        given, faults = static_check.check(source, variables, _BUILTINS | known_functions())
    except RuleError as error:
        return str(error), DYN
    except NotUnderstoodError as error:
        return f"{source!r} is not understood: {error}", DYN
    return "\n".join(static_check.located(source, fault) for fault in faults), given
