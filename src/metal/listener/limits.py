"""The limits of a listener."""

import resource
from dataclasses import dataclass

_LISTENERS = 8
"""A listener gets this part of the descriptors; there are five listeners, and BMCs and files need the rest."""


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits on connections and on the bytes and times of a request, which apply before authentication."""

    connections: int = 4096
    """Open connections; at most an eighth of the process' file descriptors."""
    per_address: int = 256
    """Open connections of one address: an IPv4 address, or the /64 network of an IPv6 address."""
    keep_seconds: float = 2.0
    """Seconds that a connection without a request keeps its place before a new one can take it. Without it a client
    that connects without pause would make the server set up each of its connections, TLS included."""
    keep_served_seconds: float = 10.0
    """The same for a connection that was served and waits for its next request, or sends a body: longer than the pause
    of a machine that polls, so that half requests from its address do not close it."""
    head_bytes: int = 16 * 1024
    """Bytes of request line and headers."""
    handshake_seconds: float = 10.0
    """Seconds from the TCP connection to the end of the TLS handshake."""
    first_byte_seconds: float = 10.0
    """Seconds until a new connection must have sent the first byte of a request."""
    head_seconds: float = 10.0
    """Seconds from the first byte of a request to the end of its headers."""
    body_seconds: float = 30.0
    """Seconds until a request's body must have arrived, in addition to the time of its bytes at `body_rate`."""
    body_rate: int = 64 * 1024
    """Bytes per second at which a body must arrive."""
    stall_seconds: float = 60.0
    """Seconds in which a client must receive a part of its response; a transport buffers about 64 KiB."""
    idle_seconds: float = 120.0
    """Seconds that a connection is kept between requests. kubectl and Go keep theirs for 90 s."""


def cap_by_descriptors(wanted: int) -> int:
    """`wanted`, but at most a listener's part of the process' file descriptors, and at least 16."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, max(16, soft // _LISTENERS))
