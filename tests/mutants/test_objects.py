"""Defects that lie between objects are detected when they are put back, by the test that shows the right behavior."""

import msgspec
import pytest

from tests.mutants import names_and_drives, order_defects, site_bugs
from tests.mutants.objects import PREVENTED, Defect

pytestmark = [pytest.mark.looptime(noop_cycles=0), pytest.mark.life, pytest.mark.timeout(60)]


@pytest.mark.parametrize("defect", PREVENTED, ids=[defect.name for defect in PREVENTED])
async def test_a_defect_that_is_put_back_is_detected(defect: Defect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test passes without the defect (in the fast lane), and fails with it."""
    defect.switch(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError, ValueError, msgspec.ValidationError)):
        await defect.test()


def test_each_defect_says_what_it_did() -> None:
    """Forty at least, each with a sentence about its consequence."""
    assert len({defect.name for defect in PREVENTED}) >= 40
    modules = {defect.switch.__module__ for defect in PREVENTED}
    assert {site_bugs.__name__, names_and_drives.__name__, order_defects.__name__} <= modules
    assert all(defect.switch.__doc__ for defect in PREVENTED)
