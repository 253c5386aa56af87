"""Whether a claim's owner asks for another network boot. Both reconcilers decide it here, and nothing else does.

Numbers only count upwards: an old copy of the claim, a restored backup or a repeated pass never asks for a boot that
was had already. What was answered is known twice, by the Server and by the claim; the higher one counts.
"""

from metal.api.claim import ServerClaim
from metal.api.server import ClaimBoot


def has_booted(boot: ClaimBoot | None, claim: ServerClaim | None = None) -> bool:
    """True when the claim that holds the server has had its first network boot; with `claim`, when it is that claim."""
    if boot is None or boot.booted_at is None:
        return False
    return claim is None or boot.claim_uid == claim.metadata.uid


def answered(claim: ServerClaim, boot: ClaimBoot | None) -> int:
    """Highest spec.bootGeneration that a network boot has answered."""
    known = boot.boot_generation if boot is not None and boot.claim_uid == claim.metadata.uid else 0
    return max(known, claim.status.boot_generation)


def is_asked(claim: ServerClaim, boot: ClaimBoot | None) -> bool:
    """True when the claim has booted, and its owner has asked for one more network boot since."""
    return has_booted(boot, claim) and claim.spec.boot_generation > answered(claim, boot)
