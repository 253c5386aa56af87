"""The signing key is created once, always published, and shared by all managers."""

import asyncio

import pytest

from metal.api.core import CONFIG_MAP, SECRET, ConfigMap
from metal.api.kinds import kinds
from metal.evidence.keys import KeyStore, public_keys
from metal.evidence.signing import KeyUnusable, SigningKey
from tests.kube.client.fakeapi import FakeAPI

pytestmark = pytest.mark.looptime
KINDS, NS = kinds(), "metal-system"


def store(api: FakeAPI) -> KeyStore:
    return KeyStore(api, KINDS, NS, "key")


async def published(api: FakeAPI) -> set[str]:
    return set(public_keys(((await api.get(CONFIG_MAP, "key-public", NS)),)))


async def test_the_first_signature_makes_the_key_and_the_next_ones_use_it() -> None:
    """Both halves have the label by which they are found and moved."""
    api = FakeAPI()
    first, second = await store(api).signing_key(), await store(api).signing_key()
    assert first.public.id == second.public.id
    assert await published(api) == {first.public.id}
    secret = await api.get(SECRET, "key", NS)
    assert secret.metadata.labels == {KINDS.key("evidence-key"): "private"}
    assert (await api.get(CONFIG_MAP, "key-public", NS)).metadata.labels == {KINDS.key("evidence-key"): "public"}


async def test_two_managers_that_begin_at_once_have_one_key() -> None:
    """The second one uses the key of the first."""
    api = FakeAPI()
    one, other = await asyncio.gather(store(api).signing_key(), store(api).signing_key())
    assert one.public.id == other.public.id
    assert await published(api) == {one.public.id}


async def test_a_key_of_before_stays_published() -> None:
    """Its signatures can still be verified."""
    api = FakeAPI()
    old = await store(api).signing_key()
    await api.delete(SECRET, "key", NS)
    new = await store(api).signing_key()
    assert await published(api) == {old.public.id, new.public.id}


async def test_a_public_half_that_was_deleted_or_changed_comes_back() -> None:
    """It is written with the next signature."""
    api = FakeAPI()
    key = await store(api).signing_key()
    await api.patch(CONFIG_MAP, "key-public", {"data": {f"{key.public.id}.pem": "x"}}, NS)
    await store(api).signing_key()
    assert await published(api) == {key.public.id}
    await api.delete(CONFIG_MAP, "key-public", NS)
    await store(api).signing_key()
    assert await published(api) == {key.public.id}


async def test_a_secret_without_a_key_is_named_and_left_alone() -> None:
    """It may have another purpose; nothing is overwritten."""
    api = FakeAPI()
    await api.create(SECRET, {"metadata": {"name": "key", "namespace": NS}, "data": {"other": "eA=="}})
    with pytest.raises(KeyUnusable, match=r"Secret metal-system/key, key private\.pem: no private key"):
        await store(api).signing_key()
    assert list((await api.get(SECRET, "key", NS)).data) == ["other"]


def test_what_is_no_key_in_a_config_map_is_passed_over() -> None:
    """An invalid entry does not hide the others."""
    key = SigningKey.new().public
    assert set(public_keys((ConfigMap(data={"readme": "hello", "a.pem": key.pem}),))) == {key.id}
