"""Metrics of the listeners."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """Open connections, and those that a limit closed; create it once per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = Gauge(
            "metal_http_connections",
            "Open connections by listener: api, boot, registry, events or metrics.",
            ["listener"], registry=registry,
        )  # fmt: skip
        self.closed = Counter(
            "metal_http_connections_closed_total",
            "Connections that were refused or closed because of a limit, by listener and reason: AddressLimit, "
            "TotalLimit, Evicted (for a connection that needed its place), HandshakeFailed, HandshakeTimeout, "
            "FirstByteTimeout, HeadTimeout, HeadTooLarge, Malformed, BodyTimeout, ResponseStalled or NoDescriptors.",
            ["listener", "reason"], registry=registry,
        )  # fmt: skip
