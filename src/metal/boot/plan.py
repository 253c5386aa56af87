"""The boot plan: URLs and kernel arguments for one image and one machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from metal.boot.errors import ScriptError
from metal.boot.oci import Reference, is_digest
from metal.boot.oci import parse as parse_reference
from metal.boot.script import Boot, tokens

DEFAULT_ARGS = "console=tty0 console=ttyS0,115200"
"""Kernel arguments for an image whose config names none."""


@dataclass(frozen=True)
class Blob:
    """One blob of one image, as identified by its URL."""

    image: Reference
    """Pinned to the digest of the manifest that was resolved for this machine."""
    digest: str

    def url(self, base_url: str, **secret: str) -> str:
        """The URL of the blob; `secret` adds uuid and token."""
        query = {"imageName": self.image.name, "layerDigest": self.digest, "version": self.image.digest, **secret}
        return f"{base_url}/image?{urlencode(query, quote_via=quote)}"

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> "Blob":
        """Parse the parameters of a URL. Raises ValueError."""
        name, digest, version = (query.get(key, "") for key in ("imageName", "layerDigest", "version"))
        if not is_digest(digest) or not is_digest(version):
            raise ValueError("layerDigest and version must be digests")
        return cls(parse_reference(f"{name}@{version}"), digest)

    @classmethod
    def from_url(cls, url: str) -> "Blob":
        """Parse a URL that `url` created. Raises ValueError."""
        return cls.from_query(dict(parse_qsl(urlsplit(url).query)))


@dataclass(frozen=True)
class Plan:
    """What one machine boots. The same plan and tokens give the same script."""

    kernel: Blob
    initramfs: Blob
    squashfs: Blob | None = None
    command_line: str = ""
    ignition: bool = True
    """Whether the machine fetches an Ignition config."""

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """All blobs that may be fetched with the boot's token."""
        return tuple(blob for blob in (self.kernel, self.initramfs, self.squashfs) if blob is not None)

    def script(self, base_url: str, uuid: str, token: str, image_token: str = "") -> str:
        """The iPXE script. Raises ScriptError when a value cannot be used in one.

        image_token: for what the operating system fetches after its Ignition, when `token` is spent.
        """
        kernel, initramfs = (blob.url(base_url, uuid=uuid, token=token) for blob in (self.kernel, self.initramfs))
        return Boot(kernel, (initramfs,), self.arguments(base_url, uuid, token, image_token)).render()

    def arguments(self, base_url: str, uuid: str, token: str, image_token: str = "") -> tuple[str, ...]:
        """The kernel's arguments, by whatever method it is loaded. Raises ScriptError."""
        args = list(tokens(self.command_line or DEFAULT_ARGS))
        if self.squashfs is not None:
            url = self.squashfs.url(base_url, uuid=uuid, token=image_token or token)
            args += ["gl.ovl=/:tmpfs", f"gl.url={url}", "gl.live=1"]
        if self.ignition:
            args += [
                "ignition.firstboot=1",
                "ignition.platform.id=metal",
                f"ignition.config.url={base_url}/ignition/{uuid}?token={token}",
            ]
        return tuple(args)

    def check(self, base_url: str) -> None:
        """Raises ScriptError when no script can be created from this plan for any machine and token."""
        try:
            self.script(base_url, "0" * 36, "t" * 43, "t" * 43)
        except ScriptError as exc:
            raise ScriptError(f"the image cannot be booted by iPXE: {exc}") from None
