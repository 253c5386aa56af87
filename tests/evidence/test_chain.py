"""Each signed record names the one before it of the same machine, and a missing one is found."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from metal.api.core import CONFIG_MAP, ConfigMap
from metal.api.kinds import kinds
from metal.api.sanitization import SanitizationEvidence
from metal.evidence import chain, record
from metal.evidence.keys import KeyStore
from metal.evidence.signing import SignatureInvalid, verify
from metal.evidence.verdict import Verdict
from tests.kube.client.fakeapi import FakeAPI

pytestmark = pytest.mark.looptime
KINDS, NS = kinds(), "metal-system"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
UUID, SWAPPED = "11223344-5566-7788-99aa-bbccddeeff00", "44332211-6655-8877-99aa-bbccddeeff00"
SIGNED_AGAIN = "signed again: it was signed before, and an older version without that signature was restored"
OWED = Verdict(owed=("drive sda is missing",))


def keys(api: FakeAPI) -> KeyStore:
    return KeyStore(api, KINDS, NS, "key")


async def conclude(
    api: FakeAPI, name: str, uuid: str = UUID, verdict: Verdict | None = None, store: KeyStore | None = None
) -> SanitizationEvidence:
    """A record of this machine with its verdict."""
    spec = {
        "serverRef": {"name": "s1"}, "systemUUID": uuid, "policy": "Clear", "bootWindow": "b", "bootTrust": "Lease",
    }  # fmt: skip
    labels = {KINDS.key(chain.MACHINE): chain.machine(uuid)}
    made = await api.create(KINDS.evidence, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    key = await (store or keys(api)).signing_key()
    return await record.conclude(api, KINDS, made, verdict or Verdict(), key, NOW)


async def problems(api: FakeAPI) -> dict[str, list[str]]:
    maps = (await api.list(CONFIG_MAP, NS, labels=f"{KINDS.key(chain.HEAD)}=true")).items
    return chain.problems((await api.list(KINDS.evidence)).items, chain.heads(maps))


async def test_records_of_one_machine_are_numbered_and_linked_in_either_byte_order() -> None:
    """Each names the one before with its digest; another machine has a chain of its own."""
    api = FakeAPI()
    first, second = await conclude(api, "a"), await conclude(api, "b", SWAPPED)
    other = await conclude(api, "c", "00000000-0000-0000-0000-000000000001")
    assert [one.status.sequence for one in (first, second, other)] == [1, 2, 1]
    assert first.status.previous is None
    assert second.status.previous is not None
    assert (second.status.previous.name, second.status.previous.digest) == ("a", chain.digest(first))
    assert await problems(api) == {}


@pytest.mark.behaviour(
    "Cleanup", "Evidence that was deleted is found by `metalctl evidence verify`, also the last one."
)
@pytest.mark.parametrize("name", ["a", "b", "c"])
async def test_a_record_that_was_deleted_is_missing(name: str) -> None:
    """The first, one in the middle, or the last one, which a ConfigMap names."""
    api = FakeAPI()
    for one in "abc":
        await conclude(api, one)
    await api.delete(KINDS.evidence, name)
    found = await problems(api)
    assert set(found) == {name}
    assert found[name][0].startswith("missing: ")


async def test_the_deletion_of_the_last_record_is_not_hidden_by_the_next() -> None:
    """The next record continues after the deleted one, and names it."""
    api = FakeAPI()
    await conclude(api, "a")
    await conclude(api, "b")
    await api.delete(KINDS.evidence, "b")
    third = await conclude(api, "c")
    assert third.status.sequence == 3
    assert set(await problems(api)) == {"b"}


async def test_a_chain_goes_on_without_its_config_map() -> None:
    """The records themselves have the number and the machine; the ConfigMap is written again."""
    api = FakeAPI()
    await conclude(api, "a")
    await api.delete(CONFIG_MAP, f"evidence-head-{chain.machine(UUID)}", NS)
    assert (await conclude(api, "b")).status.sequence == 2
    assert await problems(api) == {}
    head = await api.get(CONFIG_MAP, f"evidence-head-{chain.machine(UUID)}", NS)
    assert (head.data["name"], head.data["sequence"]) == ("b", "2")


@pytest.mark.parametrize("later", [False, True])
async def test_a_record_that_was_restored_without_its_signature_says_that_it_is_signed_again(later: bool) -> None:
    """With a number of its own and a valid signature; the signature that was lost is reported."""
    api = FakeAPI()
    made = await conclude(api, "a")
    if later:
        await conclude(api, "b")
    await api.delete(KINDS.evidence, "a")
    again = await conclude(api, "a")
    key = await keys(api).signing_key()
    verify(again, {key.public.id: key.public})
    found = await problems(api)
    assert made.status.remarks == ()
    assert (again.status.sequence, again.status.remarks) == (3 if later else 2, (SIGNED_AGAIN,))
    assert list(found) == ["a"]
    if not later:
        assert found["a"] == [f"{SIGNED_AGAIN}, as number 1 of its machine"]


async def test_an_acceptance_is_signed_again_and_stays_in_the_chain() -> None:
    """The number does not change, nor does the digest that the next record has."""
    api = FakeAPI()
    first = await conclude(api, "a", verdict=OWED)
    second = await conclude(api, "b")
    key = await keys(api).signing_key()
    accepted = await record.accept(api, KINDS, first, key, NOW)
    assert (accepted.status.sequence, accepted.status.accepted_at) == (1, NOW)
    verify(accepted, {key.public.id: key.public})
    assert await problems(api) == {}
    assert second.status.previous is not None


async def test_a_record_that_was_replaced_is_found() -> None:
    """Another record under the name of the one before has another digest; the link itself is signed."""
    api = FakeAPI()
    await conclude(api, "a", verdict=OWED)
    second = await conclude(api, "b")
    await api.delete(KINDS.evidence, "a")
    await conclude(api, "a", "00000000-0000-0000-0000-000000000001")
    assert "a" in await problems(api)
    key = await keys(api).signing_key()
    forged = msgspec.structs.replace(second.status, previous=None, sequence=1)
    with pytest.raises(SignatureInvalid):
        verify(msgspec.structs.replace(second, status=forged), {key.public.id: key.public})


async def test_records_that_are_signed_at_once_have_numbers_of_their_own() -> None:
    """One manager signs one after the other."""
    api = FakeAPI()
    store = keys(api)
    made = await asyncio.gather(*(conclude(api, name, store=store) for name in "abcd"))
    assert sorted(one.status.sequence for one in made) == [1, 2, 3, 4]
    assert await problems(api) == {}


def test_a_config_map_with_other_content_names_no_record() -> None:
    """It is skipped."""
    assert chain.heads((ConfigMap(data={"sequence": "x", "machine": "m", "name": "n"}), ConfigMap(data={}))) == ()


async def test_two_records_with_one_number_and_one_without_the_one_before_are_reported() -> None:
    """Neither comes from one manager with its ConfigMap."""
    api = FakeAPI()
    first = await conclude(api, "a")
    twin = msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, name="t"))
    late = msgspec.structs.replace(twin, status=msgspec.structs.replace(twin.status, sequence=7))
    assert "it has the number 1 of its machine, and so has a" in chain.problems((first, twin), ())["t"]
    assert "names no record before it" in chain.problems((late,), ())["t"][0]


@pytest.mark.parametrize(
    ("trust", "words"),
    [
        ("OutOfBand", "through its BMC"),
        ("Lease", "the address that DHCP had leased to a MAC address which the BMC shows"),
        ("FirstRequest", "the first client that requested them"),
        ("", "it was not recorded"),
    ],
)
@pytest.mark.behaviour(
    "Cleanup", "Evidence names how far its boot is trusted and says in words what it proves; both are signed."
)
async def test_a_record_says_what_it_proves(trust: str, words: str) -> None:
    """With the level of trust of the boot, and what it does not prove."""
    api = FakeAPI()
    spec = {"serverRef": {"name": "s1"}, "systemUUID": UUID, "bootWindow": "b9", "bootTrust": trust}
    made = await api.create(KINDS.evidence, {"metadata": {"name": "a"}, "spec": spec})
    key = await keys(api).signing_key()
    signed = await record.conclude(api, KINDS, made, Verdict(), key, NOW)
    assert words in signed.status.proves
    assert f"Trust of the boot: {trust or 'unknown'}" in signed.status.proves
    assert "does not prove that a drive" in signed.status.proves
    verify(signed, {key.public.id: key.public})
    changed = msgspec.structs.replace(signed.status, proves="everything")
    with pytest.raises(SignatureInvalid):
        verify(msgspec.structs.replace(signed, status=changed), {key.public.id: key.public})
