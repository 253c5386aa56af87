"""Metrics of what the controllers decide: transitions, time in a state, boots, erasures. No label names an object."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from metal.api.boot_window import Method, Purpose, Trust
from metal.api.sanitization import Policy, SanitizationEvidence

METHODS = frozenset({
    "ATASanitizeBlockErase", "ATASanitizeCryptoScramble", "ATASanitizeOverwrite", "ATASecurityErase",
    "ATASecurityEraseEnhanced", "NVMeFormatCryptoErase", "NVMeFormatUserDataErase", "NVMeSanitizeBlockErase",
    "NVMeSanitizeCryptoErase", "NVMeSanitizeOverwrite", "Overwrite", "SCSISanitizeBlockErase",
    "SCSISanitizeCryptoErase", "SCSISanitizeOverwrite",
})  # fmt: skip
"""Methods of the probe. A report may contain any text, and each value of a label costs memory for ever."""
NO_TRUST = "none"
"""The label trust of a boot that served no script."""
BOOT_RESULTS = ("succeeded", "failed", "contested", "cancelled")
_STATE_SECONDS = (1, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_BOOT_SECONDS = (1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)


class Metrics:
    """One set of metric families; create it once per registry (names must be unique there)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.transitions = Counter(
            "metal_transitions_total",
            "Changes of status.state (status.phase of ServerClaims) written by this process; from is None at first.",
            ["kind", "from", "to"], registry=registry,
        )  # fmt: skip
        self.state_seconds = Histogram(
            "metal_state_seconds", "Time that an object was in a state, observed when it leaves the state.",
            ["kind", "state"], registry=registry, buckets=_STATE_SECONDS,
        )  # fmt: skip
        self.boots = Counter(
            "metal_boots_total",
            "Network boots that ended. purpose: Discovery, Claim, Maintenance or Sanitization; result: succeeded, "
            "failed, contested (two parties asked for the same boot) or cancelled (no longer needed); method: IPXE; "
            "trust: OutOfBand, Lease, FirstRequest, or none when no script was served.",
            ["purpose", "method", "trust", "result"], registry=registry,
        )  # fmt: skip
        self.boot_seconds = Histogram(
            "metal_boot_phase_seconds",
            "Duration of a phase of a network boot: script (power-on until the script is served), ignition (until the "
            "Ignition is served) or report (until the report of the probe).",
            ["purpose", "phase"], registry=registry, buckets=_BOOT_SECONDS,
        )  # fmt: skip
        self.sanitizations = Counter(
            "metal_sanitizations_total",
            "Erasures of all drives of a server that ended, by required policy and result: succeeded or failed.",
            ["policy", "result"], registry=registry,
        )  # fmt: skip
        self.erasures = Counter(
            "metal_drive_erasures_total",
            "Drives of these erasures by method (none when nothing was tried, other when it is unknown) and result.",
            ["method", "result"], registry=registry,
        )  # fmt: skip
        self.options = Gauge(
            "metal_options_info",
            "1 for each section of the configuration, with a digest of its options, which all managers should share.",
            ["section", "digest"], registry=registry,
        )  # fmt: skip
        self.recycled = Counter(
            "metal_servers_recycled_total", "Servers that left Cleanup, by how the data of their tenant ended.",
            ["sanitization"], registry=registry,
        )  # fmt: skip

        self._begin()

    def _begin(self) -> None:
        """Series that alerts watch start at 0: the first failure is an increase only when there was a value before."""
        for purpose in Purpose:
            for result in BOOT_RESULTS:
                for trust in (NO_TRUST, *Trust):
                    self.boots.labels(purpose.value, Method.IPXE.value, str(trust), result)
        for policy in (Policy.CLEAR, Policy.PURGE):
            for result in ("succeeded", "failed"):
                self.sanitizations.labels(policy.value, result)

    def count_sanitization(self, evidence: SanitizationEvidence) -> None:
        """Count an erasure that ended, and each of its drives."""
        status = evidence.status
        self.sanitizations.labels(evidence.spec.policy, status.phase.lower()).inc()
        for drive in status.drives:
            method = drive.method if drive.method in METHODS else "other" if drive.method else "none"
            self.erasures.labels(method, drive.result).inc()


def unregistered() -> Metrics:
    """Metrics that are not exported."""
    return Metrics(CollectorRegistry())
