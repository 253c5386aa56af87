"""Ignition configs."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal.boot.errors import IgnitionError
from metal.boot.ignition import DEEPEST, EMPTY, LARGEST, accept, add_file, is_validated, validate


def config(**sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": "3.3.0"}, **sections}


def file(**more: Any) -> dict[str, Any]:
    return {"storage": {"files": [{"path": "/x", **more}]}}


def unit(**more: Any) -> dict[str, Any]:
    return {"systemd": {"units": [{"name": "a.service", **more}]}}


def raw(**sections: Any) -> bytes:
    return json.dumps(config(**sections)).encode()


FULL = config(
    storage={
        "files": [{"path": "/etc/hostname", "mode": 420, "overwrite": True, "contents": {"source": "data:,web%201"}}],
        "directories": [{"path": "/srv", "user": {"name": "core"}}],
        "links": [{"path": "/etc/localtime", "target": "../usr/share/zoneinfo/UTC"}],
        "disks": [{"device": "/dev/vda", "wipeTable": True, "partitions": [{"label": "root", "number": 1}]}],
        "filesystems": [{"device": "/dev/vda1", "format": "ext4", "path": "/var"}],
    },
    systemd={"units": [{"name": "a.service", "enabled": True, "dropins": [{"name": "10-x.conf", "contents": ""}]}]},
    passwd={"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"], "uid": 1000}]},
    somethingNew={"of": ["a", "later", "spec"]},
)


@pytest.mark.parametrize("version", ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"])
def test_configs_of_every_supported_version_are_valid(version: str) -> None:
    """Unknown members are accepted, as Ignition does."""
    full = FULL | {"ignition": {"version": version, "config": {"merge": [{"source": "https://h/c.ign"}]}}}
    assert validate(json.dumps(full).encode()) == full


@pytest.mark.parametrize("version", ["2.0.0", "2.3.0", "2.4.0-experimental", "3.4.0"])
def test_users_may_have_configs_of_spec_2(version: str) -> None:
    """The version says that nothing beyond it was validated."""
    content = {"path": "x"} if version.startswith("2") else {"path": "/x"}
    config = {"ignition": {"version": version}, "storage": {"files": [content]}}
    assert accept(json.dumps(config).encode()) == version
    assert is_validated(version) == version.startswith("3")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"ignition":{"version":"1.0.0"}}', b'{"ignition":{"version":"2.3"}}',
     b'{"ignitionVersion":1}', b'{"ignition":{"version":"2.3.0"}}' + b" " * LARGEST,
     b'{"ignition":{"version":"3.3.0"},"storage":[]}'],
)  # fmt: skip
def test_what_no_ignition_reads_is_refused(body: bytes) -> None:
    """Other versions, no object, too large, or of spec 3 and not valid."""
    with pytest.raises(IgnitionError):
        accept(body)


def test_configs_of_spec_2_are_not_extended() -> None:
    """What the operator adds is of spec 3."""
    with pytest.raises(IgnitionError, match=r"is 2\.3\.0; 3\.0\.0 to 3\.5\.0 can be validated and extended"):
        add_file(b'{"ignition":{"version":"2.3.0"}}', "/t", b"x")


def test_the_empty_config_is_valid() -> None:
    """It is served when a boot has no Ignition."""
    assert validate(EMPTY) == {"ignition": {"version": "3.0.0"}}


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ({"storage": {"files": [{"path": "etc/x"}]}}, "$.storage.files[0].path"),
        ({"storage": {"files": [{"path": "/ok"}, {}]}}, "$.storage.files[1].path"),
        ({"storage": {"files": [{"path": "/x", "mode": "0644"}]}}, "$.storage.files[0].mode"),
        ({"storage": {"files": [{"path": "/x", "mode": 100644}]}}, "$.storage.files[0].mode"),
        ({"storage": {"files": [{"path": "/x", "mode": True}]}}, "$.storage.files[0].mode"),
        (file(contents={"source": "file:///x"}), "$.storage.files[0].contents.source"),
        (file(contents={"compression": "xz"}), "$.storage.files[0].contents.compression"),
        ({"storage": {"files": [{"path": "/x"}, {"path": "/x"}]}}, "$.storage.files[1].path"),
        ({"storage": {"files": {}}}, "$.storage.files"),
        ({"storage": {"files": [None]}}, "$.storage.files[0]"),
        ({"storage": []}, "$.storage"),
        ({"storage": {"links": [{"path": "/x"}]}}, "$.storage.links[0].target"),
        ({"systemd": {"units": [{"name": "demo"}]}}, "$.systemd.units[0].name"),
        ({"systemd": {"units": [{"name": "../x.service"}]}}, "$.systemd.units[0].name"),
        ({"systemd": {"units": [{"name": "a.service", "enabled": "yes"}]}}, "$.systemd.units[0].enabled"),
        (unit(dropins=[{"name": "x"}]), "$.systemd.units[0].dropins[0].name"),
        ({"passwd": {"users": [{"name": "a", "groups": [1]}]}}, "$.passwd.users[0].groups[0]"),
        ({"ignition": {}}, "$.ignition.version"),
        ({"ignition": {"version": "2.2.0"}}, "$.ignition.version"),
        ({"ignition": {"version": 3}}, "$.ignition.version"),
        ({"ignition": "3.3.0"}, "$.ignition"),
        (
            {"ignition": {"version": "3.3.0", "config": {"merge": [{"source": "x"}]}}},
            "$.ignition.config.merge[0].source",
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_place(section: dict[str, Any], path: str) -> None:
    """The message begins with the JSON path of the problem."""
    with pytest.raises(IgnitionError) as caught:
        validate(raw(**section))
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"variant: fcos"])
def test_what_is_no_json_object_is_refused_at_the_root(body: bytes) -> None:
    """Butane's YAML is one of these."""
    with pytest.raises(IgnitionError, match=r"^\$"):
        validate(body)


def test_size_and_nesting_are_limited() -> None:
    """A config cannot exhaust the boot server."""
    deep: Any = "x"
    for _ in range(DEEPEST + 1):
        deep = [deep]
    with pytest.raises(IgnitionError, match="nested"):
        validate(raw(more=deep))
    with pytest.raises(IgnitionError, match="bytes"):
        validate(b" " * (LARGEST + 1))
    with pytest.raises(IgnitionError):
        validate(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(IgnitionError, match=r"4097 entries"):
        validate(raw(passwd={"groups": [{"name": f"g{n}"} for n in range(4097)]}))


def test_errors_do_not_show_values() -> None:
    """A config holds secrets; its errors become conditions."""
    with pytest.raises(IgnitionError) as caught:
        validate(raw(storage={"files": [{"path": "hunter2"}]}))
    assert "hunter2" not in str(caught.value)


def test_an_added_file_replaces_one_of_the_same_path() -> None:
    """A user cannot provide the probe's token file."""
    old = raw(storage={"files": [{"path": "/t", "contents": {"source": "data:,old"}}, {"path": "/u"}]})
    files = json.loads(add_file(old, "/t", b"new", 0o600))["storage"]["files"]
    assert [file["path"] for file in files] == ["/u", "/t"]
    assert files[1]["mode"] == 0o600


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["storage", "systemd", "passwd", "x", "kernelArguments"]), JSON, max_size=3))
def test_any_json_is_either_valid_or_refused_with_a_path(sections: dict[str, Any]) -> None:
    """Validation raises no other exception."""
    try:
        validate(raw(**sections))
    except IgnitionError as exc:
        assert exc.path.startswith("$")  # noqa: PT017 - most examples are valid


@given(
    st.binary(max_size=64),
    st.lists(st.sampled_from(["/a", "/b", "/c"]), unique=True, max_size=3),
    st.sampled_from(["/a", "/etc/metalprobe/token"]),
)
def test_adding_a_file_keeps_everything_else(content: bytes, paths: list[str], path: str) -> None:
    """The result is valid, has the content exactly, and everything else unchanged."""
    before = config(storage={"files": [{"path": other} for other in paths], "links": []}, passwd={"users": []})
    after = validate(add_file(json.dumps(before).encode(), path, content))
    (added,) = [file for file in after["storage"]["files"] if file["path"] == path]
    assert base64.b64decode(added["contents"]["source"].partition("base64,")[2]) == content
    assert [file["path"] for file in after["storage"]["files"][:-1]] == [other for other in paths if other != path]
    assert {key: value for key, value in after.items() if key != "storage"} == {
        key: value for key, value in before.items() if key != "storage"
    }
