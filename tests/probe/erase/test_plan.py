"""The order in which methods are tried."""

from hypothesis import given
from hypothesis import strategies as some

from metal.probe.erase.drives import NVME, SCSI, Drive
from metal.probe.erase.methods import CLEAR, PURGE, Method
from metal.probe.erase.plan import POLICIES, order
from metal.probe.erase.samples import Promise

NAMES = ("NVMeSanitizeCryptoErase", "ATASecurityErase", "SCSISanitizeOverwrite", "Discard", "Overwrite")
ANY = some.builds(
    Method,
    name=some.sampled_from(NAMES),
    reaches=some.sampled_from([CLEAR, PURGE]),
    promise=some.just(Promise.ZEROES),
    apply=some.just(lambda course: None),
    deadline=some.just(1.0),
    quick=some.booleans(),
)
METHODS = some.lists(ANY, max_size=8)


@given(some.sampled_from(POLICIES), METHODS)
def test_every_method_is_tried_once(policy: str, methods: list[Method]) -> None:
    """The order omits nothing: a drive that cannot be purged is still erased by its best method."""
    assert sorted(order(policy, methods), key=id) == sorted(methods, key=id)


@given(METHODS)
def test_for_purge_only_what_purges_comes_first(methods: list[Method]) -> None:
    """Within both classes the order is the one in which drives offer them."""
    planned = order(PURGE, methods)

    assert planned == [m for m in methods if m.reaches == PURGE] + [m for m in methods if m.reaches == CLEAR]


@given(METHODS)
def test_for_clear_minutes_come_before_hours(methods: list[Method]) -> None:
    """Then Purge methods, and among the slow ones the one that reports its progress."""
    planned = order(CLEAR, methods)
    quick, slow = [m for m in planned if m.quick], [m for m in planned if not m.quick]

    assert planned == quick + slow
    assert [m.reaches for m in quick] == sorted((m.reaches for m in quick), reverse=True)
    assert [m.name != "Overwrite" for m in slow] == sorted(m.name != "Overwrite" for m in slow)


@given(some.sampled_from(POLICIES), METHODS, some.sampled_from([NVME, SCSI]), some.booleans())
def test_what_may_be_a_volume_is_overwritten_first(
    policy: str, methods: list[Method], transport: str, may_be: bool
) -> None:
    """Other commands need not reach the drives behind a controller; for Purge, and for drives of their own, all is as
    ever."""
    drive = Drive("sda", "/dev/sda", "S1", "", "", transport, 1, False, "", may_be_volume=may_be)
    planned = order(policy, methods, [drive])
    volume = may_be and transport == SCSI and policy == CLEAR

    assert sorted(planned, key=id) == sorted(methods, key=id)
    if volume:
        assert [m.name != "Overwrite" for m in planned] == sorted(m.name != "Overwrite" for m in planned)
    else:
        assert planned == order(policy, methods)
