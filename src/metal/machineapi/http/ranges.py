"""Responses whose content a client may request in ranges, or already has (RFC 9110 sections 13 and 14)."""

from collections.abc import Mapping
from dataclasses import replace

from metal.boot.http_range import Unsatisfiable, parse_range
from metal.machineapi.http.response import Content, Response

_BINARY = "application/octet-stream"


def ranged(content: Content, tag: str, headers: Mapping[str, str], content_type: str = _BINARY) -> Response:
    """The content, or the range of it that the request's headers ask for. `tag` names the content, without quotes."""
    quoted, size = f'"{tag}"', content.layout.size
    common = {"ETag": quoted, "Accept-Ranges": "bytes"}
    asked = headers.get("If-None-Match", "")
    if asked and (asked.strip() == "*" or quoted in (part.strip().removeprefix("W/") for part in asked.split(","))):
        return Response(304, headers=common)
    wanted = headers.get("Range", "") if headers.get("If-Range", quoted) == quoted else ""
    try:
        part = parse_range(wanted, size) if wanted else None
    except Unsatisfiable:
        return Response(416, b"range not satisfiable\n", headers=common | {"Content-Range": f"bytes */{size}"})
    offset, length = part or (0, size)
    if part is not None:
        common["Content-Range"] = f"bytes {offset}-{offset + length - 1}/{size}"
    cut = replace(content, layout=content.layout.cut(offset, length))
    return Response(206 if part else 200, content_type=content_type, headers=common, content=cut)
