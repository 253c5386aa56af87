"""Collections: paging, expansion, broken members."""

from typing import Any

import pytest

from metal.redfish import BMCProtocolError, BMCServerError, Limits, Resource, members
from tests.redfish.fakes import FakeBMC, answer, client_of

pytestmark = pytest.mark.looptime
LIST = "/redfish/v1/List"
EXPANDED = f"{LIST}?$expand=.($levels=1)"


def page(*names: str, more: str = "") -> dict[str, Any]:
    links = [{"@odata.id": f"{LIST}/{name}"} for name in names]
    return {"@odata.id": LIST, "Members": links} | ({"Members@odata.nextLink": more} if more else {})


@pytest.fixture
def bmc() -> FakeBMC:
    bmc = FakeBMC(latency=0.01)
    for name in "abcd":
        bmc.resources[f"{LIST}/{name}"] = {"@odata.id": f"{LIST}/{name}", "Id": name}
    return bmc


def expanding(bmc: FakeBMC) -> None:
    support = {"ExpandQuery": {"NoLinks": True, "Levels": True}}
    bmc.resources["/redfish/v1/"]["ProtocolFeaturesSupported"] = support


async def ids(bmc: FakeBMC, **options: bool) -> list[str]:
    found = await members(client_of(bmc), LIST, **options)
    return [member.data["Id"] if isinstance(member, Resource) else type(member).__name__ for member in found]


async def test_pages_are_read_to_the_end_in_order(bmc: FakeBMC) -> None:
    """nextLink is followed, also as a full URL."""
    bmc.resources[LIST] = page("a", "b", more=f"https://elsewhere.example{LIST}?$skip=2")
    bmc.resources[f"{LIST}?$skip=2"] = page("c", "d")
    assert await ids(bmc) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("more", [LIST, f"{LIST}?again"])
async def test_pages_in_a_circle_are_refused(bmc: FakeBMC, more: str) -> None:
    """A page that was read before ends the read with an error."""
    bmc.resources[LIST] = page("a", more=more)
    bmc.resources[f"{LIST}?again"] = page("a", more=LIST)
    with pytest.raises(BMCProtocolError, match="endless sequence"):
        await ids(bmc)


async def test_ever_new_pages_are_refused(bmc: FakeBMC) -> None:
    """The number of pages is limited."""
    for n in range(20):
        bmc.resources[f"{LIST}?{n}" if n else LIST] = page(more=f"{LIST}?{n + 1}")
    with pytest.raises(BMCProtocolError, match="endless sequence"):
        await members(client_of(bmc, limits=Limits(pages=10)), LIST)


async def test_too_many_members_are_refused(bmc: FakeBMC) -> None:
    """The number of members is limited."""
    bmc.resources[LIST] = page(*"abcd")
    with pytest.raises(BMCProtocolError, match="more than 3 members"):
        await members(client_of(bmc, limits=Limits(members=3)), LIST)


async def test_a_member_deleted_meanwhile_is_left_out_and_a_broken_one_named(bmc: FakeBMC) -> None:
    """404 means deleted; other errors are in the member's position."""
    bmc.resources[LIST] = page("a", "gone", "b")
    bmc.fault("GET", f"{LIST}/b", answer(500))
    assert await ids(bmc) == ["a", BMCServerError.__name__]


async def test_members_are_expanded_where_the_root_says_so(bmc: FakeBMC) -> None:
    """One request instead of one for each member."""
    expanding(bmc)
    bmc.resources[EXPANDED] = {"Members": [bmc.resources[f"{LIST}/{name}"] for name in "abc"]}
    assert await ids(bmc) == ["a", "b", "c"]
    assert len(bmc.seen("GET")) == 2


async def test_expanded_members_without_id_are_read_one_by_one(bmc: FakeBMC) -> None:
    """AMI firmware drops required properties from expanded members."""
    expanding(bmc)
    bmc.resources[EXPANDED] = {"Members": [{"@odata.id": f"{LIST}/a", "Name": "half"}]}
    assert await ids(bmc) == ["a"]
    assert bmc.seen("GET", f"{LIST}/a")


@pytest.mark.parametrize("status", [400, 501, 500])
async def test_a_bmc_that_fails_at_expanding_is_asked_the_plain_way(bmc: FakeBMC, status: int) -> None:
    """Some BMCs advertise $expand without implementing it."""
    expanding(bmc)
    bmc.fault("GET", EXPANDED, answer(status))
    bmc.resources[LIST] = page("a", "b")
    assert await ids(bmc) == ["a", "b"]


async def test_expansion_can_be_forbidden(bmc: FakeBMC) -> None:
    """For the quirk no_expand."""
    expanding(bmc)
    bmc.resources[LIST] = page("a")
    assert await ids(bmc, expand=False) == ["a"]


@pytest.mark.parametrize("junk", [None, {}, "x", [None, 7, {"@odata.id": 3}, {"no": "link"}]])
async def test_members_of_wrong_types_are_ignored(bmc: FakeBMC, junk: object) -> None:
    """They are skipped without an error."""
    bmc.resources[LIST] = {"@odata.id": LIST, "Members": junk}
    assert await ids(bmc) == []
