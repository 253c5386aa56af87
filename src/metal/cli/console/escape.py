"""The escape character of a terminal session, as in ssh: `~.` at the beginning of a line ends it."""

from dataclasses import dataclass

HELP = b"\r\n~.  end this session\r\n~~  send ~ itself\r\n~?  show this\r\n"
_NEW_LINE = (0x0A, 0x0D)
_TILDE, _DOT, _QUESTION = b"~.?"


@dataclass(frozen=True)
class Typed:
    """Result of some keys: bytes to send, whether the session ends, whether help was requested."""

    send: bytes
    ends: bool = False
    help: bool = False


class Escape:
    """Finds escape sequences in the keys, which may arrive in any portions."""

    def __init__(self) -> None:
        self._at_start = True
        self._pending = False

    def feed(self, keys: bytes) -> Typed:
        """Interpret keys. Nothing after the end of the session is sent."""
        send, help = bytearray(), False
        for key in keys:
            if self._pending:
                self._pending = False
                if key == _DOT:
                    return Typed(bytes(send), ends=True, help=help)
                if key == _QUESTION:
                    help, self._at_start = True, True
                    continue
                send.append(_TILDE)
                if key == _TILDE:
                    self._at_start = False
                    continue
            elif key == _TILDE and self._at_start:
                self._pending = True
                continue
            send.append(key)
            self._at_start = key in _NEW_LINE
        return Typed(bytes(send), help=help)
