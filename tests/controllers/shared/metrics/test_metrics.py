"""Metrics of erasures have labels of bounded number."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from metal.api.sanitization import (
    DriveErasure,
    SanitizationEvidence,
    SanitizationEvidenceSpec,
    SanitizationEvidenceStatus,
)
from metal.controllers.shared.metrics.metrics import METHODS, Metrics

_NAME = re.compile(r'"((?:ATA|NVMe|SCSI)[A-Z][A-Za-z]+)"|^OVERWRITE = "(\w+)"', re.MULTILINE)


def test_every_method_of_the_probe_is_a_label() -> None:
    """A method that is added to the probe is added to the metric."""
    sources = Path("src/metal/probe/erase").glob("*.py")
    names = {one or other for source in sources for one, other in _NAME.findall(source.read_text())}

    assert names == METHODS


def test_an_erasure_is_counted_with_its_drives() -> None:
    """What a report calls its method becomes a label only when the method is known."""
    registry = CollectorRegistry()
    drives = (
        DriveErasure(method="Overwrite", result="Succeeded"),
        DriveErasure(method="x" * 1000, result="Failed"),
        DriveErasure(result="Missing"),
    )
    evidence = SanitizationEvidence(
        spec=SanitizationEvidenceSpec(policy="Purge"), status=SanitizationEvidenceStatus(phase="Failed", drives=drives)
    )
    Metrics(registry).count_sanitization(evidence)

    value = registry.get_sample_value
    assert value("metal_sanitizations_total", {"policy": "Purge", "result": "failed"}) == 1
    assert value("metal_drive_erasures_total", {"method": "Overwrite", "result": "Succeeded"}) == 1
    assert value("metal_drive_erasures_total", {"method": "other", "result": "Failed"}) == 1
    assert value("metal_drive_erasures_total", {"method": "none", "result": "Missing"}) == 1
