"""Removes secrets from what BMCs say: they quote the request in error messages, and so the URLs and nonces in it."""

import re
from collections import deque

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)(?:[^\s/@'\"]*@)?([^\s/'\"]*)/(?!redfish/)[^\s'\"]*", re.IGNORECASE)
_SHORTEST = 16
"""Characters of a path segment that may be a secret; shorter ones occur in ordinary words."""
_MOST = 32
_GONE = "***"


class Redaction:
    """What one client must not repeat: its password, paths of URLs on other hosts, and what was added."""

    def __init__(self, password: str = "") -> None:
        self._password = password
        self._added: deque[str] = deque(maxlen=_MOST)

    def __repr__(self) -> str:
        return f"<Redaction {len(self._added)} added>"

    def add(self, secret: str) -> None:
        """Conceal this from now on, and each segment of it that is long enough; the oldest of many is forgotten."""
        for part in (secret, *re.split(r"[/?&=]", secret)):
            if len(part) >= _SHORTEST and part not in self._added:
                self._added.append(part)

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        text = _URL.sub(rf"\1\2/{_GONE}", text)
        for secret in filter(None, (self._password, *self._added)):
            text = text.replace(secret, _GONE)
        return text
