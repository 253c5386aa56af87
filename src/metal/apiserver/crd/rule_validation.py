"""Admission of x-kubernetes-validations: every rule compiles, and its other fields can be used.

Names and types inside a rule are not checked: a rule that misspells a field is accepted here and fails when it runs.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metal.apiserver.cel.rules import RuleError, program
from metal.apiserver.machinery import causes
from metal.apiserver.machinery.causes import Cause
from metal.apiserver.machinery.structural import Rule

Obj = Mapping[str, Any]

_REASONS = (causes.DUPLICATE, causes.FORBIDDEN, causes.INVALID, causes.REQUIRED)
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]")


def check_rules(schema: Obj, path: str, *, within: str = "") -> Iterator[Cause]:
    """Violations in the rules of one place.

    within: path of the enclosing list or map whose items cannot be matched with those of the previous version, if any.
    """
    for index, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        where = f"{path}.x-kubernetes-validations[{index}]"
        if not str(entry.get("rule") or "").strip():
            yield causes.required(f"{where}.rule", "rule is not specified")
            continue
        faults = list(_message(entry, where))
        yield from faults
        yield from _field_path(entry, schema, where)
        if not faults:
            yield from _rule(entry, where, within)
        yield from _message_expression(entry, where)


def _message(entry: Obj, where: str) -> Iterator[Cause]:
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
    if text and not _is_path_of_properties_and_maps(text, schema):
        yield causes.invalid(f"{where}.fieldPath", text, "must be a valid path")


def _is_path_of_properties_and_maps(text: str, schema: Any) -> bool:
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


def _rule(entry: Obj, where: str, within: str) -> Iterator[Cause]:
    rule, optional = str(entry["rule"]), entry.get("optionalOldSelf")
    fault = _fault(rule)
    if fault:
        yield causes.invalid(f"{where}.rule", rule, f"compilation failed: {fault}")
    uses_old = not fault and program(Rule(rule=rule)).uses_old
    if optional is not None and not uses_old:
        yield causes.invalid(f"{where}.optionalOldSelf", optional, "may not be set if oldSelf is not used in rule")
    if uses_old and within:
        message = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
        yield causes.invalid(f"{where}.rule", rule, message)


def _message_expression(entry: Obj, where: str) -> Iterator[Cause]:
    text = str(entry.get("messageExpression") or "")
    if text and not text.strip():
        yield causes.required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")
    elif text and (fault := _fault(text)):
        yield causes.invalid(f"{where}.messageExpression", text, f"messageExpression compilation failed: {fault}")


def _fault(source: str) -> str:
    """Why an expression does not compile, in the engine's words; empty when it does."""
    try:
        program(Rule(rule=source))
    except RuleError as error:
        return str(error)
    return ""
