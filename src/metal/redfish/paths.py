"""Paths of links and redirects; every request stays on its BMC, whichever host a URL names."""

from urllib.parse import SplitResult, urlsplit

from metal.redfish.errors import BMCProtocolError

ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"


def local_path(url: str) -> str:
    """Path and query of a link. Its host is ignored, because BMCs use arbitrary names for themselves.

    Raises: BMCProtocolError when the link has no usable path.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BMCProtocolError(f"The BMC sent the link {url[:80]!r}, which is not a URL.") from None
    path = "/" + parts.path.lstrip("/")
    if not parts.path.startswith("/") or any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise BMCProtocolError(f"The BMC sent the link {url[:80]!r}, which is not a path on it.")
    return f"{path}?{parts.query}" if parts.query else path


def redirect_path(url: str, origin: str) -> str:
    """The path of a redirect within this BMC.

    Raises: BMCProtocolError when it names another host, port or scheme.
    """
    path = local_path(url)
    there, here = urlsplit(url), urlsplit(origin)
    if there.netloc and _place(there, here.scheme) != _place(here, here.scheme):
        raise BMCProtocolError(
            f"{here.netloc} redirects to {there.scheme or here.scheme}://{there.netloc}, which is not followed. "
            "If that is the BMC, set its address, port and scheme accordingly."
        )
    return path


def _place(parts: SplitResult, scheme: str) -> tuple[str, str, int | None]:
    scheme = parts.scheme or scheme
    try:
        port = parts.port
    except ValueError:
        raise BMCProtocolError("The BMC sent a link with a port that is not a number.") from None
    return scheme, parts.hostname or "", port or {"https": 443, "http": 80}.get(scheme)
