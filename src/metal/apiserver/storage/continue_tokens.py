"""The continue token of a paged list, in the format of kube-apiserver (meta.k8s.io/v1)."""

import base64
import binascii
import json
from typing import NamedTuple

from metal.apiserver.machinery.status import bad_request

_FORM = "meta.k8s.io/v1"


class ContinueToken(NamedTuple):
    """Version of the list and start of its next page. version -1: the newest version at that time. str() encodes it."""

    version: int
    start: str

    def __str__(self) -> str:
        text = json.dumps({"v": _FORM, "rv": self.version, "start": self.start}, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def parse_token(text: str) -> ContinueToken:
    """The token that a client sends back. Raises StatusError 400."""
    try:
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if found["v"] != _FORM:
            raise ValueError(f"server does not recognize this encoded version {json.dumps(found['v'])}")
        token = ContinueToken(int(found["rv"]), str(found["start"]).removeprefix("/"))
    except binascii.Error:
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
    except (ValueError, TypeError, KeyError, LookupError) as garbled:
        raise bad_request(f"invalid continue token: continue key is not valid: {garbled}") from None
    if not token.start or token.version == 0:
        what = "encoded start key empty" if not token.start else "incorrect encoded start resourceVersion"
        raise bad_request(f"invalid continue token: continue key is not valid: {what} (version {_FORM})")
    return token
