"""Metrics of the image cache."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class CacheMetrics:
    """One set of metric families; create it once per registry (names must be unique there)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "metal_image_cache_requests_total",
            "Blobs of images that were needed, by result: hit (read from the cache) or miss (a download began).",
            ["result"], registry=registry,
        )  # fmt: skip
        self.downloads = Counter(
            "metal_image_downloads_total", "Downloads of blobs that ended, by result: succeeded or failed.", ["result"],
            registry=registry,
        )  # fmt: skip
        for result in ("succeeded", "failed"):
            self.downloads.labels(result)
        self.downloaded = Counter(
            "metal_image_downloaded_bytes_total", "Bytes of blobs that were downloaded and verified.", registry=registry
        )
        self.bytes = Gauge("metal_image_cache_bytes", "Bytes of blobs in the cache.", registry=registry)
