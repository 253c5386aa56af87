"""Rules of Secrets and ConfigMaps: keys, sizes, types, immutability. No message repeats the value of a Secret."""

import base64
import binascii
import json
import re
from typing import Any

from metal.apiserver.machinery.causes import TOO_LONG, Cause, forbidden, invalid, required
from metal.apiserver.machinery.status import bad_request

Obj = dict[str, Any]

LIMIT = 1024 * 1024
"""Maximum of bytes of all values together."""
_KEY_RE = "[-._a-zA-Z0-9]+"
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_KEY_RE}')"
)
_ACCOUNT = "kubernetes.io/service-account.name"
_NEEDED = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER = frozenset({"kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"})
_FROZEN = "field is immutable when `immutable` is set"


def prepare_secret(obj: Obj, old: Obj | None) -> None:
    """Merge stringData into data. Raises StatusError 400 for values that are not strings or not base64."""
    _check_texts(obj, "Secret", ("data", "stringData"))
    plain = obj.pop("stringData", None)
    if plain:
        folded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **folded}
    _check_base64(obj, "Secret", "data")


def prepare_config_map(obj: Obj, old: Obj | None) -> None:
    """Raises StatusError 400 for values that are not strings or not base64."""
    _check_texts(obj, "ConfigMap", ("data", "binaryData"))
    _check_base64(obj, "ConfigMap", "binaryData")


def _check_texts(obj: Obj, kind: str, fields: tuple[str, ...]) -> None:
    """Refuse values that are not strings before the schema does, whose messages repeat the value."""
    for name in fields:
        values = obj.get(name) or {}
        if not isinstance(values, dict):
            raise bad_request(f"{kind} {name}: expected an object")
        for key, value in values.items():
            if not isinstance(value, str) and not (value is None and name != "stringData"):
                raise bad_request(f"{kind} {name}[{key}]: expected a string; quote it in YAML")


def _check_base64(obj: Obj, kind: str, field: str) -> None:
    values: dict[str, str | None] = obj.get(field) or {}
    for key, value in list(values.items()):
        try:
            decoded = base64.b64decode((value or "").replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            message = f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data in {field}[{key}]'
            raise bad_request(message) from None
        # As Go encodes it: null is the empty value, line breaks are removed.
        values[key] = base64.b64encode(decoded).decode()


def check_secret(obj: Obj, old: Obj | None) -> list[Cause]:
    """Violations of the rules for a Secret."""
    data = obj.get("data") or {}
    causes = []
    if old is not None and old.get("type") != obj.get("type"):
        causes.append(invalid("type", obj.get("type"), "field is immutable"))
    causes += _check_frozen(("data",), obj, old)
    causes += [cause for key in sorted(data) for cause in _check_key("data", key)]
    if _size(data) > LIMIT:
        causes.append(Cause("data", TOO_LONG, f"Too long: may not be more than {LIMIT} bytes"))
    return causes + _check_type(str(obj.get("type") or ""), obj, data)


def _check_type(kind: str, obj: Obj, data: Obj) -> list[Cause]:
    if kind == "kubernetes.io/service-account-token":
        named = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT)
        return [] if named else [required(f"metadata.annotations[{_ACCOUNT}]")]
    if kind == "kubernetes.io/basic-auth":
        wanted = ("username", "password")
        return [] if any(key in data for key in wanted) else [required(f"data[{key}]") for key in wanted]
    lacking = [key for key in _NEEDED.get(kind, ()) if key not in data or (kind.endswith("ssh-auth") and not data[key])]
    if lacking:
        return [required(f"data[{key}]") for key in lacking]
    return _check_docker(_NEEDED[kind][0], data) if kind in _DOCKER else []


def _check_docker(key: str, data: Obj) -> list[Cause]:
    field = f"data[{key}]"
    try:
        value = json.loads(base64.b64decode(data[key]))
    except ValueError:
        return [invalid(field, "<secret contents redacted>", "is no JSON")]
    if isinstance(value, dict):
        return []
    return [invalid(field, "<secret contents redacted>", "is no JSON object")]


def check_config_map(obj: Obj, old: Obj | None) -> list[Cause]:
    """Violations of the rules for a ConfigMap."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    causes = _check_frozen(("data", "binaryData"), obj, old)
    for key in sorted(data):
        causes += _check_key("data", key)
        if key in binary:
            causes.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    causes += [cause for key in sorted(binary) for cause in _check_key("binaryData", key)]
    if sum(len(str(value).encode()) for value in data.values()) + _size(binary) > LIMIT:
        causes.append(Cause("[]", TOO_LONG, f"Too long: may not be more than {LIMIT} bytes"))
    return causes


def _size(values: Obj) -> int:
    return sum(len(base64.b64decode(value or "")) for value in values.values())


def _check_key(field: str, key: str) -> list[Cause]:
    where = f"{field}[{key}]"
    causes = []
    if len(key) > 253:
        causes.append(invalid(where, key, "must be no more than 253 characters"))
    if not re.fullmatch(_KEY_RE, key):
        causes.append(invalid(where, key, _KEY_RULE))
    if key in (".", ".."):
        causes.append(invalid(where, key, f"must not be '{key}'"))
    elif key.startswith(".."):
        causes.append(invalid(where, key, "must not start with '..'"))
    return causes


def _check_frozen(fields: tuple[str, ...], obj: Obj, old: Obj | None) -> list[Cause]:
    if old is None or old.get("immutable") is not True:
        return []
    causes = [forbidden(name, _FROZEN) for name in fields if (obj.get(name) or {}) != (old.get(name) or {})]
    return causes if obj.get("immutable") is True else [forbidden("immutable", _FROZEN), *causes]
