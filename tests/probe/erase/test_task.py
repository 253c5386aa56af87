"""The task file."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from metal.probe.erase import task

LISTED = {"name": "sda", "serialNumber": "S1", "wwn": "naa.5", "size": 480103981056, "slot": "Bay 1"}


def written(folder: Path, told: Any) -> Path:
    path = folder / "sanitization.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


def test_a_task_names_policy_and_drives(tmp_path: Path) -> None:
    """Fields of a drive may be empty, zero, null or absent."""
    read = task.read(written(tmp_path, {"policy": "Purge", "drives": [LISTED, {"serialNumber": "S2", "wwn": None}]}))

    assert read.policy == "Purge"
    assert [(each.name, each.serial, each.wwn, each.size, each.slot) for each in read.drives] == [
        tuple(LISTED[key] for key in ("name", "serialNumber", "wwn", "size", "slot")),
        ("", "S2", "", 0, ""),
    ]


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ("{", "not JSON"),
        ("[]", "policy must be one of Clear, Purge"),
        ({"policy": "None"}, "policy must be one of Clear, Purge"),
        ({"policy": ["Clear"]}, "policy must be one of Clear, Purge"),
        ({"policy": "Clear", "drives": {}}, None),
        ({"policy": "Clear", "drives": "sda"}, "drives must be a list"),
        ({"policy": "Clear", "drives": ["sda"]}, "drives must be a list"),
        ({"policy": "Clear", "drives": [LISTED, {"slot": 7}]}, r"drives\[1\].slot must be a text"),
        ({"policy": "Clear", "drives": [{"size": "7"}]}, r"drives\[0\].size must be a whole number"),
    ],
)
def test_a_wrong_task_is_refused_by_field(tmp_path: Path, told: Any, named: str | None) -> None:
    """One message with the file's name."""
    path = written(tmp_path, told)
    if named is None:
        assert task.read(path).drives == ()
        return

    with pytest.raises(ValueError, match=named) as refused:
        task.read(path)
    assert str(path) in str(refused.value)


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from([*LISTED, "x"]), inner),
    max_leaves=8,
)


@given(policy=JSON, drives=JSON)
def test_no_task_breaks_the_reader(policy: Any, drives: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any content is a task, or rejected with a message."""
    path = written(tmp_path_factory.mktemp("task"), {"policy": policy, "drives": drives})

    with pytest.raises(ValueError, match="must be"):
        task.read(path)
    path.write_text(json.dumps({"policy": "Clear", "drives": drives}))
    with contextlib.suppress(ValueError):
        assert task.read(path).policy == "Clear"
