"""Schemas of built-in kinds: a value of the wrong type cannot be decoded and is refused before validation."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from metal.apiserver.machinery.causes import TYPE_INVALID, Cause
from metal.apiserver.machinery.status import bad_request
from metal.apiserver.schema.schema import Compiled


class Typed(Compiled):
    """Schema of a kind that kube-apiserver decodes into a Go type. `validate` raises StatusError 400."""

    def __init__(self, kind: str, version: str, openapi_schema: Mapping[str, Any]) -> None:
        super().__init__(openapi_schema)
        self._named = f'{kind} in version "{version}" cannot be handled as a {kind}'

    def validate(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Cause]:
        """Violations of the schema, except wrong types, which raise."""
        causes = super().validate(obj, old)
        wrong = [str(cause) for cause in causes if cause.reason == TYPE_INVALID]
        if wrong:
            raise bad_request(f"{self._named}: {'; '.join(wrong)}")
        return causes


def typed(kind: str, version: str, openapi_schema: Mapping[str, Any]) -> Typed:
    """The compiled schema of a built-in kind, the same for all embedded APIs of a process."""
    return _typed(kind, version, json.dumps(openapi_schema))


@cache
def _typed(kind: str, version: str, text: str) -> Typed:
    return Typed(kind, version, json.loads(text))
