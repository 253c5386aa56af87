"""Why `metalctl up` did not start, in a sentence with a way out."""

import errno

from metal.apiserver.auth.tokens import TokenError
from metal.apiserver.storage.journal import JournalError
from metal.cli.support.datadir import Unusable
from metal.config import ConfigError
from metal.controllers.endpoint.mac_prefixes import PrefixError

EXPECTED = (OSError, Unusable, ConfigError, PrefixError, JournalError, TokenError)
"""What can go wrong without anybody's program being wrong."""

_OTHERS = "choose another with --api-listen, --boot-listen, --registry-listen"
_ADDRESSES = {
    errno.EADDRINUSE: f"stop the program that has it, or {_OTHERS}, --bmc-port, --images-port,",
    errno.EADDRNOTAVAIL: f"no interface of this machine has that address; {_OTHERS}",
    errno.EACCES: f"ports below 1024 are not for everybody; {_OTHERS}, --bmc-port, --images-port,",
}


class NotStarted(Exception):
    """The control plane did not start; the message says why."""


def sentence(exc: Exception) -> str:
    """What one of EXPECTED means for who started the program."""
    if not isinstance(exc, OSError):
        return str(exc)
    if exc.filename:
        return f"{exc.filename}: {exc.strerror}; give this user access to it, or choose another --data"
    if exc.errno in _ADDRESSES:
        return f"{exc.strerror}; {_ADDRESSES[exc.errno]} or listen.metrics in the configuration"
    return str(exc)
