"""Bodies that are expensive to read or to parse do not keep other requests waiting."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from metal.apiserver.machinery.causes import MOST
from metal.apiserver.storage import backup
from metal.apiserver.web import bodies, parsing
from tests.apiserver.web.test_app import WIDGETS, Web, web
from tests.apiserver.widgets import widget

__all__ = ["web"]
YAML = {"Content-Type": "application/yaml"}
WIDGET_YAML = b"apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1}\n"


class Slow:
    """A parser of YAML that takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        read: Callable[..., Any] = bodies.read

        def slow(*args: Any) -> Any:
            if args[0] == YAML["Content-Type"]:
                self.begun.release()
                assert self.go_on.wait(10)
            return read(*args)

        monkeypatch.setattr(bodies, "read", slow)


@pytest.mark.behaviour("Limits", "The embedded API answers other requests while it parses a body in YAML.")
async def test_other_requests_are_answered_while_yaml_is_parsed(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop is free; the body is parsed in a thread."""
    slow = Slow(monkeypatch)
    posting = asyncio.ensure_future(web.ask("POST", WIDGETS, WIDGET_YAML, headers=YAML))
    assert await asyncio.to_thread(slow.begun.acquire, timeout=10)
    assert (await web.ask("GET", "/readyz"))[0] == 200
    assert (await web.ask("POST", WIDGETS, widget("b")))[0] == 201
    assert not posting.done()
    slow.go_on.set()
    assert (await posting)[0] == 201


async def test_one_user_cannot_fill_the_queue_of_the_parser(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of bodies a user gets 429 with Retry-After; those before are answered."""
    slow = Slow(monkeypatch)
    held = [
        asyncio.ensure_future(web.ask("POST", WIDGETS, WIDGET_YAML, headers=YAML))
        for _ in range(parsing.WAITING_OF_ONE)
    ]
    assert await asyncio.to_thread(slow.begun.acquire, timeout=10)
    extra = [asyncio.ensure_future(web.ask("POST", WIDGETS, WIDGET_YAML, headers=YAML)) for _ in range(2)]
    done, _ = await asyncio.wait([*held, *extra], return_when=asyncio.FIRST_COMPLETED, timeout=10)
    answer = done.pop().result()
    code, body, response = answer
    assert (code, body["reason"], response.headers["Retry-After"]) == (429, "TooManyRequests", "1")
    slow.go_on.set()
    codes = [answer[0] for answer in await asyncio.gather(*held, *extra)]
    assert sorted(codes) == [201, *[409] * (parsing.WAITING_OF_ONE - 1), 429, 429]


async def test_yaml_has_a_limit_and_json_a_larger_one(web: Web) -> None:
    """413 names the limit and the way out."""
    code, body, _ = await web.ask("POST", WIDGETS, b"a: " + b"x" * bodies.YAML_LIMIT, headers=YAML)
    assert (code, body["reason"]) == (413, "RequestEntityTooLarge")
    assert "send JSON" in body["message"]
    apply = {"Content-Type": "application/apply-patch+yaml"}
    code, _, _ = await web.ask("PATCH", f"{WIDGETS}/a?fieldManager=m", b"a: " + b"x" * bodies.YAML_LIMIT, headers=apply)
    assert code == 413


@pytest.mark.parametrize("item", [b"1", b"{}", b"[[]]", b'""'])
async def test_a_body_of_a_million_values_is_refused(web: Web, item: bytes) -> None:
    """A list in 3 MB of JSON costs its decoding, not its validation."""
    body = b'{"spec":{"list":[' + b",".join([item] * (2_800_000 // (len(item) + 1))) + b"]}}"
    code, answer, _ = await web.ask("POST", WIDGETS, body)
    assert code == 413
    assert str(bodies.VALUES_LIMIT) in answer["message"]


def test_brackets_in_text_are_no_lists() -> None:
    """A large text with many of them, such as an Ignition config, is accepted."""
    text = b'{"data":{"a":"' + b'[{\\"a\\":[' * bodies.VALUES_LIMIT + b'"}}'
    assert len(bodies.read("application/json", text)["data"]["a"]) == 7 * bodies.VALUES_LIMIT


@pytest.mark.behaviour("Limits", "A refused object costs at most a hundred causes, however many violations it has.")
async def test_a_status_lists_a_hundred_causes(web: Web) -> None:
    """Of an object with thousands of violations; the message says that there are more."""
    labels = {f"key/{number}/!": "value" for number in range(5000)}
    wrong = {**widget("a"), "metadata": {"name": "a", "labels": labels}}
    code, answer, _ = await web.ask("POST", WIDGETS, wrong)
    assert (code, len(answer["details"]["causes"])) == (422, MOST)
    assert answer["message"].endswith(", further causes are not listed]")
    assert len(answer["message"]) < 100_000


async def test_duplicate_and_unknown_fields_are_listed_up_to_a_number(web: Web) -> None:
    """Strict validation of thousands of unknown fields answers with a message of some kilobytes."""
    wrong = {**widget("a"), "spec": {"size": 1, **{f"u{number}": 1 for number in range(5000)}}}
    code, answer, _ = await web.ask("POST", f"{WIDGETS}?fieldValidation=Strict", wrong)
    assert (code, answer["message"].count("unknown field")) == (400, MOST)


async def test_copies_are_shared_among_users(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """One user gets two at a time, then 429; the requests of others are not affected."""
    begun, go_on = threading.Semaphore(0), threading.Event()
    save = backup.save

    def slow(*args: Any) -> None:
        begun.release()
        assert go_on.wait(10)
        save(*args)

    monkeypatch.setattr(backup, "save", slow)
    held = [asyncio.ensure_future(web.ask("GET", "/snapshot")) for _ in range(2)]
    for _ in held:
        assert await asyncio.to_thread(begun.acquire, timeout=10)
    code, answer, response = await web.ask("GET", "/snapshot")
    assert (code, answer["reason"], response.headers["Retry-After"]) == (429, "TooManyRequests", "5")
    go_on.set()
    assert [got[0] for got in await asyncio.gather(*held)] == [200, 200]
    async with asyncio.timeout(5):
        while (await web.ask("GET", "/snapshot"))[0] != 200:
            pass  # that the two are complete is still on its way
