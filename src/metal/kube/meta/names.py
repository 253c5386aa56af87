"""Rules for names and labels (RFC 1123, Kubernetes API conventions), in the words of kube-apiserver."""

import re

_SUBDOMAIN_RE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL_RE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_VALUE_RE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_NAME_RE = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_RE}')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_RE}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE_RE}')"
)
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_RE}')"
)
_TOO_LONG = "must be no more than 63 bytes"


def is_subdomain(text: str) -> bool:
    """Whether text is an RFC 1123 subdomain of at most 253 characters."""
    return len(text) <= 253 and re.fullmatch(_SUBDOMAIN_RE, text) is not None


def is_label(text: str) -> bool:
    """Whether text is an RFC 1123 label of at most 63 characters."""
    return len(text) <= 63 and re.fullmatch(_LABEL_RE, text) is not None


def key_fault(key: str) -> str:
    """Why text cannot be the key of a label or annotation, or a finalizer; empty when it can."""
    prefix, slash, name = key.rpartition("/")
    if not name:
        return "name part must be non-empty"
    if slash and not is_subdomain(prefix):
        return f"prefix part {SUBDOMAIN_RULE}"
    if len(name) > 63:
        return f"name part {_TOO_LONG}"
    return "" if re.fullmatch(_NAME_RE, name) else _NAME_RULE


def label_value_fault(value: str) -> str:
    """Why text cannot be the value of a label; empty when it can."""
    if len(value) > 63:
        return _TOO_LONG
    return "" if re.fullmatch(_VALUE_RE, value) else _VALUE_RULE
