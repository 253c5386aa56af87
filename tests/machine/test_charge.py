"""Which Server is in charge of a machine."""

from typing import Any

import msgspec

from metal.api.server import Server
from metal.machine.charge import has_tenancy, in_charge

CLAIM = {"serverClaimRef": {"namespace": "default", "name": "c"}}
WINDOW = {
    "bootWindow": {
        "id": "1", "purpose": "Discovery", "configRef": {"namespace": "n", "name": "c"}, "phase": "Open",
        "openedAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-01-01T01:00:00Z",
    }
}  # fmt: skip


def server(name: str, day: int, spec: dict[str, Any] | None = None, **status: Any) -> Server:
    meta = {"name": name, "uid": name, "creationTimestamp": f"2026-01-{day:02d}T00:00:00Z"}
    return msgspec.convert({"metadata": meta, "spec": spec or {}, "status": status}, Server)


def chosen(*servers: Server) -> str:
    """In any order."""
    found = {choice.metadata.name if choice else "" for choice in (in_charge(servers), in_charge(servers[::-1]))}
    (name,) = found
    return name


def test_the_oldest_is_in_charge_when_nothing_else_decides() -> None:
    """Of the same age, the one with the smaller UID."""
    assert chosen(server("new", 2), server("old", 1)) == "old"
    assert chosen(server("a", 1), server("b", 1)) == "a"


def test_a_tenancy_goes_before_age() -> None:
    """A recorded tenant before a claim, a claim before a boot in progress, a boot before nothing."""
    old, booting = server("old", 1), server("booting", 2, **WINDOW)
    claimed, tenant = server("claimed", 3, CLAIM), server("tenant", 4, tenant="uid")
    assert chosen(old, booting) == "booting"
    assert chosen(old, booting, claimed) == "claimed"
    assert chosen(old, booting, claimed, tenant) == "tenant"
    assert [has_tenancy(one) for one in (old, booting, claimed, tenant)] == [False, False, True, True]


def test_of_two_that_have_recorded_a_tenant_none_is_in_charge() -> None:
    """Only an administrator knows whose data is on the drives."""
    assert chosen(server("one", 1, tenant="a"), server("two", 2, CLAIM, tenant="b")) == ""


def test_of_two_claims_that_have_not_reached_the_machine_the_older_server_counts() -> None:
    """Nothing of either is on the machine."""
    assert chosen(server("one", 2, CLAIM), server("two", 1, CLAIM)) == "two"
