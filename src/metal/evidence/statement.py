"""What a record of evidence proves, in its own words, which are signed with it."""

from metal.api.boot_window import Trust
from metal.api.sanitization import SanitizationEvidence

_BOOT = {
    Trust.OUT_OF_BAND: "the token of that boot reached the machine through its BMC",
    Trust.LEASE: (
        "the boot script and its token were served only to the address that DHCP had leased to a MAC address which the "
        "BMC shows; another device on the boot network that used this address could have sent the report"
    ),
    Trust.FIRST_REQUEST: (
        "the boot script and its token were served to the first client that requested them with the UUID of the "
        "machine; no DHCP lease of a MAC address that the BMC shows confirms that it was the machine, so another "
        "device on the boot network could have sent the report"
    ),
}
_UNKNOWN = "it was not recorded to whom the boot script and its token were served"
_LIMIT = "It does not prove that a drive or its firmware reported the truth."


def statement(evidence: SanitizationEvidence) -> str:
    """The statement for a record that is about to be signed."""
    spec = evidence.spec
    if not spec.boot_window:
        return (
            f"Server {spec.server_ref.name} was deleted before its drives were erased, and the sanitization that "
            "remarks name has settled this record. What was erased, and how far that is trusted, is in the evidence "
            "named there."
        )
    return (
        f"A system with the one-time report token of boot {spec.boot_window} of server {spec.server_ref.name} reported "
        "these results; the manager compared them with the drives that it knew, and signed exactly this record. Trust "
        f"of the boot: {spec.boot_trust or 'unknown'}, that is, {_boot(spec.boot_trust)}. {_LIMIT}"
    )


def _boot(trust: str) -> str:
    return _BOOT[Trust(trust)] if trust in tuple(Trust) else _UNKNOWN
