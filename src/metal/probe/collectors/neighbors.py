"""LLDP neighbours of the network interfaces."""

from __future__ import annotations

from metal.probe.collectors import Fields
from metal.probe.listener import Listener


def collect(listener: Listener, seconds: float) -> list[Fields]:
    """One entry per interface that could be listened to, with the neighbours heard within `seconds`.

    Raises:
        OSError: an interface could not be listened to and none other was heard.
    """
    heard = listener.neighbors(seconds)
    if not heard and listener.problems:
        raise OSError("; ".join(listener.problems))
    return [{"name": name, "neighbors": neighbors} for name, neighbors in sorted(heard.items())]
