"""Puts the boot core together from settings."""

from metal.boot.core.cache import BlobCache
from metal.boot.core.images import RegistryImages
from metal.boot.core.remote import Remote
from metal.boot.settings import BootSettings


def registry_images(settings: BootSettings) -> RegistryImages:
    """Images from registries with a disk cache; `start` it before use and `aclose` it after."""
    return RegistryImages(
        Remote(settings.remote), BlobCache(settings.cache, settings.cache_bytes), settings.architecture
    )
