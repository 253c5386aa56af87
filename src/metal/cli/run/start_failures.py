"""Messages for failed starts of `metalctl up`, with the way out."""

import errno

from metal.apiserver.auth.tokens import TokenError
from metal.apiserver.storage.journal import JournalError
from metal.cli.support.datadir import Unusable
from metal.config import ConfigError
from metal.controllers.endpoint.mac_prefixes import PrefixError

EXPECTED = (OSError, Unusable, ConfigError, PrefixError, JournalError, TokenError)
"""Failures of the environment or the configuration, not of the program."""

_OTHERS = "choose another with --api-listen, --boot-listen, --registry-listen, --metrics-listen"
_ADDRESSES = {
    errno.EADDRINUSE: f"stop the program that uses it, or {_OTHERS}, --bmc-port, --images-port",
    errno.EADDRNOTAVAIL: f"no network interface of this machine has that address; {_OTHERS}",
    errno.EACCES: f"ports below 1024 require privileges; {_OTHERS}, --bmc-port, --images-port",
}


class NotStarted(Exception):
    """The control plane did not start. The message has the reason."""


def sentence(exc: Exception) -> str:
    """Return the message for one of EXPECTED."""
    if not isinstance(exc, OSError):
        return str(exc)
    if exc.filename:
        return f"{exc.filename}: {exc.strerror}; grant this user access, or choose another --data"
    if exc.errno in _ADDRESSES:
        return f"{exc.strerror}; {_ADDRESSES[exc.errno]}"
    return str(exc)
