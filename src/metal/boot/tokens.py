"""Tokens: 32 random bytes each, safe in a URL."""

import secrets
from collections.abc import Callable

NewToken = Callable[[], str]


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(32)
