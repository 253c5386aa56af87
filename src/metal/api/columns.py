"""Printer columns of `kubectl get`: those of the Go operator, and the columns Since and Waiting-For."""

from metal.api.meta import Column

_WIDE = 100
"""Priority of the columns that only `-o wide` shows."""

_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_SINCE = Column("Since", ".status.since", "date", description="Time since the state last changed.")
_WAITING_FOR = Column(
    "Waiting-For", ".status.waitingFor", description="What the controller waits for. Empty when it waits for nothing."
)

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
    Column(
        "Erased", ".status.sanitizationProgress.percent", "integer", _WIDE, "Completed percentage of the sanitization."
    ),
    Column(
        "Time-Left",
        ".status.sanitizationProgress.timeLeft",
        priority=_WIDE,
        description="Estimated remaining time of the sanitization.",
    ),
    Column("Architecture", ".status.architecture", priority=_WIDE),
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
    Column("Ended", ".status.endedAt", "date", description="Time since the result was decided."),
    Column("Key", ".status.signature.keyID", priority=_WIDE, description="ID of the key that signed the evidence."),
    Column("Claim", ".spec.claimUID", priority=_WIDE, description="UID of the ServerClaim that had used the server."),
    _AGE,
)

IPXE_BOOT_CONFIG = (
    Column("State", ".status.state"),
    _SINCE,
    _WAITING_FOR,
    _AGE,
)


def server_maintenance(group: str) -> tuple[Column, ...]:
    """Columns of a ServerMaintenance. Its reason is an annotation whose key contains the API group."""
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
