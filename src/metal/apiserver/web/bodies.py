"""Bodies of requests: JSON, YAML and, for built-in kinds, protobuf; with limits on size and nesting."""

import re
from typing import Any

import msgspec
import yaml

from metal.apiserver.machinery import status
from metal.apiserver.machinery.options import PatchType
from metal.apiserver.web import protobuf

SIZE_LIMIT = 3 * 1024 * 1024
"""Maximum of bytes of a body; the limit of kube-apiserver."""
DEPTH_LIMIT = 100
"""Maximum of nesting, far below the recursion limit of Python."""

YAML_LIMIT = 256 * 1024
"""Maximum of bytes of a body in YAML, whose parser is a hundred times slower than that of JSON."""
VALUES_LIMIT = 50_000
"""Maximum of values (members and items at all levels) of a body: about ten times the largest CRDs. Each is visited
several times while the object is pruned, defaulted, validated and stored."""

_JSON = "application/json"
YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})
APPLY = PatchType.APPLY.value
_ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


class _Loader(yaml.CSafeLoader):
    """YAML as Go parses it: no dates, and no numbers to base 60 (12:34:56 is a string)."""


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0b[0-1_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"),
    "tag:yaml.org,2002:float": re.compile(r"[-+]?(?=[^.eE]*[.eE])(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"),
}
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(rf"^(?:{_NUMBERS[tag].pattern})$") if tag in _NUMBERS else pattern)
        for tag, pattern in resolvers
        if tag != "tag:yaml.org,2002:timestamp"
    ]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


for _first in "yYnN":
    # go-yaml parses the single letters as booleans, as in YAML 1.1.
    _Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), [_first])
_Loader.bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}


def media_type(content_type: str) -> str:
    """The bare media type of a Content-Type header; JSON when there is none."""
    return content_type.partition(";")[0].strip().lower() or _JSON


def read(content_type: str, body: bytes, kind: str = "") -> Any:
    """The value of a body. kind: the expected kind, for the error message. Raises StatusError 400 or 415."""
    media = media_type(content_type)
    message = f"the object provided is unrecognized (must be of type {kind}): " if kind else ""
    if media == _JSON:
        return _checked(_json(body, f"{message}couldn't get version/kind; json parse error: "))
    if media in YAML:
        return _checked(_yaml(body, message))
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body)
        except protobuf.ProtobufError as refused:
            raise status.bad_request(f"unable to decode protobuf: {refused}") from refused
        except protobuf.UnknownKindError as unknown:
            raise status.unsupported_media_type(_ACCEPTED[:2]) from unknown
    raise status.unsupported_media_type(_ACCEPTED)


def read_patch(content_type: str, body: bytes, *, custom: bool = False) -> tuple[PatchType, Any]:
    """Kind and value of a patch. custom: whether it is for a custom resource. Raises StatusError 400 or 415."""
    kinds = [kind for kind in PatchType if not custom or kind is not PatchType.STRATEGIC]
    media = media_type(content_type)
    kind = next((kind for kind in kinds if kind.value == media), None)
    if kind is None:
        raise status.unsupported_media_type([kind.value for kind in kinds])
    if kind is PatchType.APPLY and not looks_like_json(body):  # kubectl sends JSON as apply-patch+yaml
        return kind, _checked(_yaml(body, _BAD_YAML))
    return kind, _checked(_json(body, _BAD_YAML if kind is PatchType.APPLY else "error decoding patch: "))


_BAD_YAML = "error decoding YAML: error converting YAML to JSON: "


def _number(text: str) -> int | float:
    """1.0 is the integer 1, as Go encodes it."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


_EXACT = 2.0**53
_decoder = msgspec.json.Decoder(float_hook=_number)


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')


def _containers(body: bytes) -> int:
    """How many lists and objects begin in a text."""
    return body.count(b"[") + body.count(b"{")


def _json(body: bytes, message: str) -> Any:
    # Before decoding: a million empty lists take a second, in which the interpreter runs nothing else.
    if _containers(body) > VALUES_LIMIT and _containers(_STRING.sub(b"", body)) > VALUES_LIMIT:
        raise _too_many()
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as garbled:
        why = "unexpected end of JSON input" if "truncated" in str(garbled) else str(garbled)
        raise status.bad_request(f"{message}{why}") from garbled
    except RecursionError:
        raise _too_deep() from None


def _yaml(body: bytes, message: str) -> Any:
    if len(body) > YAML_LIMIT:
        raise yaml_too_large()
    try:
        _checked_events(body)
        value = yaml.load(body, _Loader)  # noqa: S506 - derived from the safe loader
        # Keys and numbers as in JSON.
        return _decoder.decode(msgspec.json.encode(value))
    except yaml.MarkedYAMLError as garbled:
        line = garbled.problem_mark.line if garbled.problem_mark else 0
        raise status.bad_request(f"{message}yaml: line {line}: {garbled.problem}") from garbled
    except (yaml.YAMLError, TypeError, ValueError) as garbled:
        raise status.bad_request(f"{message}yaml: {garbled}") from garbled
    except RecursionError:
        raise _too_deep() from None


def _checked_events(body: bytes) -> None:
    """Refuse aliases, a few bytes of which can expand to gigabytes, nesting that overflows the stack, and many values.

    Raises StatusError 400 and 413, YAMLError.
    """
    depth = nodes = 0
    for event in yaml.parse(body, yaml.CSafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        if nodes > VALUES_LIMIT:  # with the keys
            raise _too_many()
        if isinstance(event, yaml.AliasEvent):
            raise status.bad_request("yaml: aliases are not accepted")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise _too_deep()


def yaml_too_large() -> status.StatusError:
    """413: a body in YAML that is longer than YAML_LIMIT."""
    return status.too_large(f"the limit of a body in YAML is {YAML_LIMIT} bytes; send JSON")


def looks_like_json(body: bytes) -> bool:
    """Whether a body that may be YAML or JSON is parsed as JSON, which is many times faster."""
    return body.lstrip().startswith(b"{")


def _too_deep() -> status.StatusError:
    return status.bad_request(f"the body is nested deeper than {DEPTH_LIMIT} levels")


def _too_many() -> status.StatusError:
    return status.too_large(f"the limit of the values in a body is {VALUES_LIMIT}")


def _checked(value: Any) -> Any:
    level = [value] if isinstance(value, dict | list) else []
    values = 0
    for _ in range(DEPTH_LIMIT):
        values += sum(map(len, level))
        if values > VALUES_LIMIT:
            raise _too_many()
        below = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
        level = [child for child in below if isinstance(child, dict | list)]
        if not level:
            return value
    raise _too_deep()
