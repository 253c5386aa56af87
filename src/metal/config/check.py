"""Validates the values of options beyond their type."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from metal.api.boot_window import Trust
from metal.api.sanitization import Firmware, Policy
from metal.config import check_registries
from metal.config.options import Config
from metal.machine.placeholders import plain

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]*")
_LEASE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def problem(section: str, name: str, value: object) -> str:
    """Return what is wrong with a value, with the fix; empty if it is valid."""
    text = str(value)
    if section in _SECTIONS:
        return _SECTIONS[section](name, value)
    if name in ("api_group", "boot_group") and not _GROUP.fullmatch(text):
        return f"is {text!r}: write a DNS name in lower case with a dot, such as metal.ironcore.dev"
    if name == "namespace" and not _NAMESPACE.fullmatch(text):
        return f"is {text!r}: write a DNS label in lower case, such as metal-system"
    if name == "scheme" and text not in ("http", "https"):
        return f"is {text!r}: write https or http"
    if (section == "Limits" or name in ("boot_attempts", "event_slowdown", "workers")) and text == "0":
        return "is 0: write at least 1"
    if name == "probe_image" and text and ("//" in text or not _IMAGE.fullmatch(text)):
        return f"is {text!r}: write an OCI reference without a scheme, such as registry.example/os/discovery:1"
    return _list(name, value) if isinstance(value, tuple) else ""


def combination_problem(config: Config) -> str:
    """Return what is wrong with a combination of options, with the fix; empty if it is valid."""
    for name in ("boot", "registry", *(("events",) if config.listen.events else ())):
        host, _ = split_listen(getattr(config.listen, name))
        if ipaddress.ip_address(host).is_unspecified and not getattr(config.advertise, name):
            return (
                f"listen.{name} is {host}, to which machines cannot connect: set advertise.{name} to the URL that they "
                "use"
            )
    if config.advertise.events and not config.listen.events:
        return "advertise.events is set and listen.events is not: set both, or neither"
    times = config.timeouts
    if config.boot.minimum_trust == Trust.FIRST_REQUEST and times.race_window >= min(times.discovery, times.claim_boot):
        return (
            "timeouts.raceWindow must be shorter than timeouts.discovery and timeouts.claimBoot: with "
            "boot.minimumTrust FirstRequest each boot waits for it"
        )
    election = config.election
    if not election.lease_duration > election.renew_deadline > 2 * election.retry_period:
        return (
            "election: leaseDuration must be longer than renewDeadline, which must be longer than two retryPeriods; "
            "otherwise two leaders could act, or one lost request would end the leadership"
        )
    return check_registries.combination_problem(config.registries)


def _listener(name: str, value: object) -> str:
    return "" if name in ("metrics", "events") and not value else _listen(str(value))


def _advertised(name: str, value: object) -> str:
    text = str(value)
    is_plain_http = name == "api" and text.startswith("http:")
    return f"is {text!r}: the API serves https only" if is_plain_http else _url(text)


def _boot(name: str, value: object) -> str:
    if name == "minimum_trust" and value not in tuple(Trust):
        return f"is {str(value)!r}: write OutOfBand, Lease or FirstRequest"
    if name == "default_architecture" and value not in ("amd64", "arm64"):
        return f"is {str(value)!r}: write amd64 or arm64"
    return ""


def _election(name: str, value: object) -> str:
    if name == "lease" and not _LEASE.fullmatch(str(value)):
        return f"is {str(value)!r}: write a DNS name in lower case, such as metal-operator"
    if name == "lease_duration" and isinstance(value, float) and value % 1:
        return f"is {value:g} s: write whole seconds"
    return ""


def _sanitization(name: str, value: object) -> str:
    text = str(value)
    if name == "unknown_data" and text not in ("Erase", "Trust"):
        return f"is {text!r}: write Erase or Trust"
    if name == "wave" and text == "0":
        return "is 0: write at least 1"
    if name == "policy" and text not in tuple(Policy):
        return f"is {text!r}: write None, Clear or Purge"
    if name == "firmware" and text not in tuple(Firmware):
        return f"is {text!r}: write None, ClearTPM or ResetBIOS"
    if name == "rate" and text == "0":
        return "is 0: write bytes per second, such as 50000000"
    if name == "key_secret" and not _LEASE.fullmatch(text):
        return f"is {text!r}: write a DNS name in lower case, such as metal-evidence-key"
    return ""


def _list(name: str, values: tuple[str, ...]) -> str:
    if name == "non_unique_drives" and not all(map(plain, values)):
        return "has an entry without letters and digits: write serial numbers or models of drives"
    return _namespaces(values) if name == "enforced_namespaces" else ""


def _enrolment(name: str, value: object) -> str:
    if name == "approval" and value not in ("Automatic", "Manual"):
        return f"is {str(value)!r}: write Automatic or Manual"
    for text in value if name == "networks" and isinstance(value, tuple) else ():
        try:
            ipaddress.ip_network(text)
        except ValueError as exc:
            return f"has {text!r}: write a network such as 192.0.2.0/24 ({exc})"
    if name == "expected" and isinstance(value, tuple) and not all(text.strip() for text in value):
        return "has an empty entry: write MAC addresses and serial numbers"
    return ""


def _namespaces(names: tuple[str, ...]) -> str:
    wrong = [name for name in names if not _NAMESPACE.fullmatch(name)]
    return f"has {wrong[0]!r}: write names of namespaces in lower case, such as metal-system" if wrong else ""


def split_listen(text: str) -> tuple[str, int]:
    """Return address and port of address:port. Raises ValueError with a message."""
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


_SECTIONS: Mapping[str, Callable[[str, Any], str]] = {
    "Listen": _listener, "Advertise": _advertised, "Enrolment": _enrolment, "BootOptions": _boot,
    "Election": _election, "Sanitization": _sanitization, "Adoption": _sanitization,
    "Registries": check_registries.problem, "RegistryServer": check_registries.problem,
    "SigningKeys": check_registries.problem,
}  # fmt: skip
"""The check of each section, and entry of a list, that has one of its own."""
