"""Format of a response from the Accept header (RFC 9110, section 12.5.1)."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from metal.apiserver.machinery.status import not_acceptable

JSON = "application/json"
YAML = "application/yaml"
ACCEPTED = (JSON, YAML)


class Shape(StrEnum):
    """The shape of a response."""

    PLAIN = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    GROUPS = "APIGroupDiscoveryList"


class Form(NamedTuple):
    """Media type and shape of a response; version is the API version of the shape."""

    media: str = JSON
    shape: Shape = Shape.PLAIN
    version: str = ""

    @property
    def content_type(self) -> str:
        """The Content-Type of the response."""
        if self.shape is Shape.GROUPS:
            return f"{self.media};g=apidiscovery.k8s.io;v={self.version};as={self.shape}"
        return self.media


_VERSIONS = {
    Shape.TABLE: ("meta.k8s.io", ("v1", "v1beta1")),
    Shape.PARTIAL: ("meta.k8s.io", ("v1",)),
    Shape.PARTIAL_LIST: ("meta.k8s.io", ("v1",)),
    Shape.GROUPS: ("apidiscovery.k8s.io", ("v2",)),
}


def choose(accept: str, shapes: Iterable[Shape] = ()) -> Form:
    """The first supported format in the header: plain, or one of `shapes`. Raises StatusError 406."""
    offered = frozenset(shapes)
    for entry in sorted(_entries(accept or "*/*"), key=lambda entry: -_quality(entry)):
        form = _form(entry, offered)
        if form is not None:
            return form
    raise not_acceptable(ACCEPTED)


def _entries(accept: str) -> list[dict[str, str]]:
    entries = []
    for text in accept.split(","):
        media, *parameters = (part.strip() for part in text.split(";"))
        pairs = [parameter.partition("=") for parameter in parameters]
        entries.append({"": media.lower(), **{key.strip().lower(): value.strip() for key, _, value in pairs}})
    return entries


def _quality(entry: dict[str, str]) -> float:
    try:
        return float(entry.get("q", "1"))
    except ValueError:
        return 0.0


def _form(entry: dict[str, str], offered: frozenset[Shape]) -> Form | None:
    if entry[""] in ("*/*", "application/*", JSON):
        media = JSON
    elif entry[""] in (YAML, "application/x-yaml", "text/yaml"):
        media = YAML
    else:
        return None
    wanted = entry.get("as", "")
    if not wanted:
        return Form(media)
    shape = next((shape for shape in offered if shape.value == wanted), None)
    if shape is None:
        return None
    group, versions = _VERSIONS[shape]
    version = entry.get("v", "")
    return Form(media, shape, version) if entry.get("g") == group and version in versions else None
