"""Whether a claim has booted, and whether it asks for another network boot."""

from datetime import UTC, datetime

from metal.api.claim import ServerClaim, ServerClaimSpec, ServerClaimStatus
from metal.api.claim_boot import booted_generation, has_booted, requests_boot
from metal.api.meta import ObjectMeta
from metal.api.tenancy import ClaimBoot

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _claim(uid: str = "a", wanted: int = 0, known: int = 0) -> ServerClaim:
    spec, status = ServerClaimSpec(boot_generation=wanted), ServerClaimStatus(boot_generation=known)
    return ServerClaim(metadata=ObjectMeta(name="c", uid=uid), spec=spec, status=status)


def test_a_boot_counts_for_the_claim_that_it_was_for() -> None:
    """Without a claim, the boot of any claim counts; a boot that is only requested counts for none."""
    boot = ClaimBoot(claim_uid="a", booted_at=NOW)
    assert has_booted(boot)
    assert has_booted(boot, _claim("a"))
    assert not has_booted(boot, _claim("b"))
    assert not has_booted(ClaimBoot(claim_uid="a"), _claim("a"))
    assert not has_booted(None)


def test_another_boot_is_asked_for_by_a_higher_number_only() -> None:
    """The number counts that Server or claim remembers, whichever is higher."""
    boot = ClaimBoot(claim_uid="a", booted_at=NOW, boot_generation=2)
    assert booted_generation(_claim(known=3), boot) == 3
    assert booted_generation(_claim("b"), boot) == 0
    assert requests_boot(_claim(wanted=3), boot)
    assert not requests_boot(_claim(wanted=2), boot)
    assert not requests_boot(_claim(wanted=3, known=3), boot)
    assert not requests_boot(_claim(wanted=1), None)
