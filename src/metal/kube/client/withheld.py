"""Removes values from the API's refusals of requests for Secrets, and for other kinds that contain passwords.

The text of a refusal may repeat what the request contained: an admission webhook answers with any text, and a schema
error shows the value. Controllers show refusals in conditions, Events and logs, so each request for a Secret or a
BMCSecret, also one that reads it, raises an error that has only code, reason and the paths of fields.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from metal.kube.client.errors import ApiError

_FIELD = re.compile(r"(metadata|data|stringData|immutable|type|allowedBMCs|status)([.\[][\w./\[\]-]*)?")
"""Paths of a Secret and a BMCSecret; a webhook may put any text there."""
_MOST = 10
"""Most fields that an error names."""


@contextmanager
def withheld() -> Iterator[None]:
    """Raise an ApiError of the body again without any text of the answer."""
    try:
        yield
    except ApiError as exc:
        raise without_values(exc) from None


def without_values(exc: ApiError) -> ApiError:
    """An error of the same class with code, reason and paths of fields."""
    reason = type(exc).default_reason or "APIError"
    fields = _fields(exc.details)
    named = f" (fields {', '.join(fields)})" if fields else ""
    text = (
        f"{reason}, HTTP status {exc.code}{named}. The words of the answer are not shown, because they may repeat a "
        "password or another secret; the same change with kubectl and --dry-run=server shows them"
    )
    return type(exc)(text, code=exc.code, reason=reason, retry_after=exc.retry_after)


def _fields(details: Mapping[str, Any]) -> list[str]:
    causes = details.get("causes") or ()
    found = (str(one.get("field", "")) for one in causes if isinstance(one, Mapping))
    return [field for field in dict.fromkeys(found) if _FIELD.fullmatch(field)][:_MOST]
