"""Printer columns of `kubectl get`: the Go operator's, and beside them since when a state holds and what is awaited."""

from metal.api.meta import Column

_WIDE = 100
"""Priority of columns that only `-o wide` shows."""

_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_SINCE = Column("Since", ".status.since", "date", description="How long the state has held.")
_WAITING_FOR = Column("Waiting-For", ".status.waitingFor", description="What is awaited; empty when nothing is.")

ENDPOINT = (
    Column("MACAddress", ".spec.macAddress"),
    Column("IP", ".spec.ip"),
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)

BMC = (
    Column("MACAddress", ".status.macAddress"),
    Column("IP", ".status.ip"),
    Column("Model", ".status.model"),
    Column("SKU", ".status.sku", priority=_WIDE),
    Column("SerialNumber", ".status.serialNumber", priority=_WIDE),
    Column("FirmwareVersion", ".status.firmwareVersion", priority=_WIDE),
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    Column("PowerState", ".status.powerState"),
    _AGE,
)

BMC_SECRET = (
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)

SERVER = (
    Column("SystemUUID", ".spec.systemUUID"),
    Column("Manufacturer", ".status.manufacturer"),
    Column("Model", ".status.model"),
    Column("Memory", ".status.totalSystemMemory"),
    Column("SKU", ".status.sku", priority=_WIDE),
    Column("SerialNumber", ".status.serialNumber", priority=_WIDE),
    Column("PowerState", ".status.powerState"),
    Column("IndicatorLED", ".status.indicatorLED", priority=_WIDE),
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    Column("Erased", ".status.sanitizationProgress.percent", "integer", priority=_WIDE),
    Column("Time-Left", ".status.sanitizationProgress.timeLeft", priority=_WIDE),
    Column("Unclaimable", ".spec.unclaimable", "boolean", priority=_WIDE),
    _AGE,
)

SERVER_CLAIM = (
    Column("Server", ".spec.serverRef.name"),
    Column("Ignition", ".spec.ignitionSecretRef.name"),
    Column("Image", ".spec.image"),
    Column("Phase", ".status.phase"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)

SERVER_BOOT_CONFIGURATION = (
    Column("ServerRef", ".spec.serverRef.name"),
    Column("Image", ".spec.image"),
    Column("IgnitionRef", ".spec.ignitionSecretRef.name"),
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)

SERVER_READINESS_RULE = (
    Column("Mode", ".spec.enforcementMode"),
    Column("Taint", ".spec.taint.key"),
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)

SANITIZATION_EVIDENCE = (
    Column("Server", ".spec.serverRef.name"),
    Column("Policy", ".spec.policy"),
    Column("Phase", ".status.phase"),
    Column("Ended", ".status.endedAt", "date"),
    Column("Key", ".status.signature.keyID", priority=_WIDE),
    Column("Claim", ".spec.claimUID", priority=_WIDE),
    _AGE,
)

IPXE_BOOT_CONFIG = (
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)


def server_maintenance(group: str) -> tuple[Column, ...]:
    """Columns of a ServerMaintenance; its reason stands in an annotation that carries the group's name."""
    escaped = group.replace(".", r"\.")
    return (
        Column("Server", ".spec.serverRef.name"),
        Column("Policy", ".spec.policy"),
        Column("BootConfiguration", ".spec.serverBootConfigurationTemplate.name"),
        Column("Reason", rf".metadata.annotations['{escaped}/reason']"),
        Column("State", ".status.state"),
        _SINCE,
        _WAITING_FOR,
        Column("Priority", ".spec.priority", "integer"),
        _AGE,
    )
