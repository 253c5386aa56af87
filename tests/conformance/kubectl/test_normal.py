"""What is taken out before two outputs are compared, and what stays."""

import pytest

from tests.conformance.kubectl.normal import normalise, sorted_json


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("uid: 3f1c9f0e-6b1b-4c8e-9d2a-0123456789ab", "uid: <uid>"),
        ('resourceVersion: "17"', 'resourceVersion: "<version>"'),
        ('"resourceVersion": "17",', '"resourceVersion": "<version>",'),
        (r"{\"resourceVersion\":\"17\"}", r"{\"resourceVersion\":\"<version>\"}"),
        ("Resource Version:  17", "Resource Version:  <version>"),
        ("time: 2026-11-21T22:45:32Z", "time: <time>"),
        ("renewTime: 2026-11-21T22:45:32.123456Z", "renewTime: <time>"),
        ("a     Off      12s", "a  Off  <age>"),
        ("a     Off      3m2s", "a  Off  <age>"),
        ("Get https://127.0.0.1:6443/api", "Get <server>/api"),
    ],
)
def test_what_no_two_runs_share_is_taken_out(text: str, left: str) -> None:
    """Random UIDs, versions, times, ages and ports."""
    assert normalise(text, "r123") == left + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "systemUUID: 38947555-7742-3448-3784-823347823834",
        "size: 42",
        "  indented: 3",
        'The Server "a" is invalid: spec.power: Unsupported value: 7',
        "image: registry.example.com/os/demo:1.0",
    ],
)
def test_everything_else_stays(text: str) -> None:
    """UUIDs of machines, numbers, indentation and messages are compared."""
    assert normalise(text, "r123") == text + "\n"


def test_names_of_a_run_are_made_equal() -> None:
    """The suffix that keeps runs apart reads RUN again."""
    assert normalise("srv-r123-a", "r123") == "srv-RUN-a\n"


def test_lines_are_chosen_and_ordered() -> None:
    """only keeps lines; shuffled sorts them; blur hides what a server makes up."""
    assert normalise("b 1\nc 2\na 3\n", "r1", only="^[ab]", shuffled=True, blur=r"\d") == "a <blurred>\nb <blurred>\n"


def test_json_is_compared_by_its_values() -> None:
    """Keys may stand in any order; what is no JSON is compared as it stands."""
    assert sorted_json('{"b":1,"a":[2]}') == sorted_json('{"a":[2],"b":1}')
    assert sorted_json("404 page not found") == "404 page not found"
