"""Random writes by several managers: both homes make the same object of them, and the same owners."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal.apiserver.patching.field_set import fields_of, is_member
from metal.apiserver.schema.schema import Compiled
from tests.conformance.api import WIDGET_SPEC, Api, Obj, Reply
from tests.conformance.conftest import embedded, install, kube
from tests.conformance.random_writes import Step, Writer, lasting, look, take
from tests.conformance.ways import APPLY
from tests.kubeapi.cluster import KubeCluster

SEQUENCES = 25


@pytest.fixture
async def homes(cluster: KubeCluster, tmp_path: Path) -> AsyncIterator[tuple[Api, Api]]:
    """The embedded API and kube-apiserver, with a namespace of one name in each."""
    async with AsyncExitStack() as stack:
        here = Api(await stack.enter_async_context(embedded("inprocess", tmp_path)), may_differ=False)
        there = Api(await stack.enter_async_context(kube(cluster)), may_differ=False)
        there.space = here.space
        for api in (here, there):
            await install(api)
            stack.push_async_callback(api.delete, f"/api/v1/namespaces/{api.space}")
        yield here, there


def answer(reply: Reply) -> tuple[int, str, list[str]]:
    """Code, reason, and what is told: kube-apiserver does not order the causes of an Invalid."""
    causes = {f"{cause['field']}: {cause['message']}" for cause in reply.causes}
    return reply.code, reply.reason, sorted(causes) or [reply.message]


async def follow(api: Api, plural: str, name: str, steps: list[Step]) -> list[Any]:
    """What a home answers to each step, whether it wrote, and what is there then."""
    seen: list[Any] = []
    before = ""
    for step in steps:
        reply = await take(api, plural, name, step)
        now: Obj = await look(api, plural, name)
        version = now["metadata"]["resourceVersion"]
        seen.append((answer(reply), version != before, lasting(now)))
        before = version
    return seen


@pytest.mark.kube
@pytest.mark.parametrize("plural", ["widgets", "configmaps"])
async def test_both_homes_agree(homes: tuple[Api, Api], plural: str) -> None:
    """After every step of every sequence answer, object and owners are equal."""
    for seed in range(SEQUENCES):
        name = f"s{seed}"
        steps = Writer(plural, name, random.Random(seed)).steps()

        here, there = [await follow(api, plural, name, steps) for api in homes]

        for number, step in enumerate(steps):
            assert here[number] == there[number], f"sequence {seed}, step {number}: {step}"


NUMBERS = itertools.count()
STATUS: Obj = {"type": "object", "properties": {"phase": {"type": "string"}}}
ROOT = Compiled({"type": "object", "properties": {"spec": WIDGET_SPEC, "status": STATUS}}).root


def members(fields: Obj, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Every place that a set of fields names."""
    here = {prefix} if prefix and is_member(fields) else set()
    return here.union(*(members(sub, (*prefix, key)) for key, sub in fields.items() if key != "."))


async def check(api: Api, plural: str, rng: random.Random) -> None:
    """After random steps, entries own existing fields only, and the same apply again changes nothing."""
    name = f"x{next(NUMBERS)}"
    for step in Writer(plural, name, rng).steps():
        reply = await take(api, plural, name, step)
        now = await look(api, plural, name)

        assert reply.code in (200, 201, 409, 422), reply
        there = members(fields_of(ROOT, {key: value for key, value in now.items() if key in ("spec", "status")}))
        for entry in now["metadata"].get("managedFields", ()):
            owned = members({k: v for k, v in entry["fieldsV1"].items() if k in ("f:spec", "f:status")})
            assert owned <= there, entry
        if reply.code < 300 and step.verb == APPLY:
            again = await take(api, plural, name, step)
            assert again.ok() == now


def test_owners_own_what_is_there(tmp_path: Path) -> None:
    """No sequence of writes fails by itself or gives away what is not there; a repeated apply changes nothing."""
    with asyncio.Runner() as runner:
        # One moment for ever: times of owners are no subject here.
        way = embedded("inprocess", tmp_path, lambda: datetime(2030, 1, 1, tzinfo=UTC))
        api = Api(runner.run(way.__aenter__()), may_differ=False)
        runner.run(install(api))

        @given(st.randoms(use_true_random=False), st.sampled_from(["widgets", "configmaps"]))
        @settings(max_examples=20, deadline=None)
        def ever(rng: random.Random, plural: str) -> None:
            runner.run(check(api, plural, rng))

        try:
            ever()
        finally:
            runner.run(way.__aexit__(None, None, None))
