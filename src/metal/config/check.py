"""What an option's value must look like beyond its type."""

import ipaddress
import re
from urllib.parse import urlsplit

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def problem(section: str, name: str, value: object) -> str:
    """What is wrong with a value, with the fix; empty when nothing is."""
    text = str(value)
    if section == "Listen":
        return "" if name == "metrics" and not text else _listen(text)
    if section == "Advertise":
        return _url(text)
    if name in ("api_group", "boot_group") and not _GROUP.fullmatch(text):
        return f"is {text!r}: write a DNS name in lower case with a dot, such as metal.ironcore.dev"
    if name == "namespace" and not _NAMESPACE.fullmatch(text):
        return f"is {text!r}: write a DNS label in lower case, such as metal-system"
    if name == "scheme" and text not in ("http", "https"):
        return f"is {text!r}: write https or http"
    if name == "boot_attempts" and text == "0":
        return "is 0: write at least 1"
    return ""


def split_listen(text: str) -> tuple[str, int]:
    """Address and port of address:port. Raises ValueError with a sentence."""
    wrong = _listen(text)
    if wrong:
        raise ValueError(wrong)
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _listen(text: str) -> str:
    host, _, port = text.rpartition(":")
    fix = "write address:port, such as 127.0.0.1:8443 or [::1]:8443"
    if not port.isdigit() or int(port) > 65535:
        return f"is {text!r}: {fix}"
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return f"is {text!r}: {fix}"
    return ""


def _url(text: str) -> str:
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment:
        return ""
    return f"is {text!r}: write a base URL such as http://192.0.2.1:8082"
