"""Decides whether a claim requests another network boot. The Server and the ServerClaim reconciler both use it.

Generations only increase: an old copy of the claim, a restored backup or a repeated pass never requests a boot that has
already succeeded. The Server and the claim both record the generation that was booted; the higher one counts.
"""

from metal.api.claim import ServerClaim
from metal.api.tenancy import ClaimBoot


def has_booted(boot: ClaimBoot | None, claim: ServerClaim | None = None) -> bool:
    """Return True when the first network boot of the bound claim has succeeded; with `claim`, of that claim."""
    if boot is None or boot.booted_at is None:
        return False
    return claim is None or boot.claim_uid == claim.metadata.uid


def booted_generation(claim: ServerClaim, boot: ClaimBoot | None) -> int:
    """Return the highest spec.bootGeneration for which a network boot has succeeded."""
    known = boot.boot_generation if boot is not None and boot.claim_uid == claim.metadata.uid else 0
    return max(known, claim.status.boot_generation)


def requests_boot(claim: ServerClaim, boot: ClaimBoot | None) -> bool:
    """Return True when the claim has booted and requests another network boot."""
    return has_booted(boot, claim) and claim.spec.boot_generation > booted_generation(claim, boot)
