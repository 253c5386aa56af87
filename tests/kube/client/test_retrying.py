"""A patient client asks again what can safely be asked again, and for some seconds only."""

import asyncio
import random
from typing import Any

import pytest

from metal.kube.client.errors import Conflict, ServerError, TooManyRequests, Unavailable
from metal.kube.client.retrying import RetryingClient
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.things import THING

pytestmark = pytest.mark.looptime
NS = "ns"
BODY: dict[str, Any] = {"metadata": {"name": "a", "namespace": NS}}


@pytest.fixture
def api() -> FakeAPI:
    return FakeAPI()


@pytest.fixture
def patient(api: FakeAPI) -> RetryingClient:
    return RetryingClient(api, within=8.0, rng=random.Random(1))


async def test_reads_are_tried_again(api: FakeAPI, patient: RetryingClient) -> None:
    """Refused, failed or unanswered: the answer comes when the API is back."""
    await api.create(THING, BODY)
    api.faults.next("get", Unavailable("gone"), ServerError("ill"), TooManyRequests("slow down"))
    assert (await patient.get(THING, "a", NS)).metadata.name == "a"
    api.faults.next("list", Unavailable("gone"))
    assert len((await patient.list(THING, NS)).items) == 1


async def test_patience_ends(api: FakeAPI, patient: RetryingClient) -> None:
    """After its seconds the last error is told."""
    api.faults.next("get", *[Unavailable("gone")] * 1000)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(Unavailable):
        await patient.get(THING, "a", NS)
    assert 6.0 < asyncio.get_running_loop().time() - begun <= 8.0
    assert len(api.calls) < 15


async def test_retry_after_is_kept(api: FakeAPI, patient: RetryingClient) -> None:
    """An API that says when to come back is not asked before; one that says never so soon is not waited for."""
    await api.create(THING, BODY)
    begun = asyncio.get_running_loop().time()
    api.faults.next("get", TooManyRequests("slow down", retry_after=1.5))
    await patient.get(THING, "a", NS)
    assert asyncio.get_running_loop().time() - begun >= 1.5
    await _ends_at_once(api, patient)


async def _ends_at_once(api: FakeAPI, patient: RetryingClient) -> None:
    impatient = RetryingClient(api, within=1.0, rng=random.Random(1))
    api.faults.next("get", TooManyRequests("slow down", retry_after=60.0))
    with pytest.raises(TooManyRequests):
        await impatient.get(THING, "a", NS)


async def test_an_uncertain_write_is_not_repeated(api: FakeAPI, patient: RetryingClient) -> None:
    """A write that may have happened is the caller's to judge; one that the API refused to take is sent again."""
    await api.create(THING, BODY)
    api.faults.next("patch", Unavailable("gone"))
    with pytest.raises(Unavailable):
        await patient.patch(THING, "a", {"metadata": {"labels": {"x": "y"}}}, NS)
    api.faults.next("patch", TooManyRequests("slow down"))
    assert (await patient.patch(THING, "a", {"metadata": {"labels": {"x": "z"}}}, NS)).metadata.labels == {"x": "z"}


async def test_other_errors_are_told_at_once(api: FakeAPI, patient: RetryingClient) -> None:
    """A conflict does not go away by waiting."""
    api.faults.next("get", Conflict("changed"))
    with pytest.raises(Conflict):
        await patient.get(THING, "a", NS)
    assert len(api.calls) == 1
