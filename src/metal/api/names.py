"""Names that one part writes and another reads: annotations, objects, and files on a machine that boots the probe.

Annotations and labels stand here without the API group; `Kinds.key` adds it.
"""

OPERATION = "operation"
"""Annotation of any kind: what an administrator asks the operator to do with the object."""
IGNORE = "ignore"
"""Operation that makes the operator leave the object alone, as long as the annotation stays."""
IGNORING = (IGNORE, "ignore-propagated", "ignore-child-and-self")
"""Operations of a Server with that effect; the last two are those of the Go operator, v0.7."""
RETRY = "retry"
"""Operation that makes the operator try again what failed."""
ACCEPT_INTERFACES = "accept-reported-interfaces"
"""Operation of a Server: record the network interfaces of a report although its BMC does not show them."""
PARK, UNPARK = "park", "unpark"
"""Operations of a Server: leave its machine and BMC alone, and manage it again."""
GRACEFUL_RESTART, HARD_RESTART = "graceful-restart-server", "hard-restart-server"
"""Operations of a Server: restart with and without a shutdown of the operating system."""
POWER_CYCLE, FORCE_OFF, FORCE_ON = "power-cycle-server", "force-off-server", "force-on-server"
"""Operations of a Server: cut the power and restore it, cut it, restore it."""
MAINTENANCE_REASON = "reason"
"""Annotation of a ServerMaintenance: why it is needed, for the owners of claims."""
PARKED = "parked"
"""Annotation of a Server: "true" as long as it is parked. It outlives a lost status."""
BMC_LABELS = "bmc-labels"
"""Annotation of a Server: digest of the labels that were copied from its BMC last."""

NOT_ERASED = "data-not-erased"
"""Taint of a Server: the data of a claim of the namespace that is its value was left on the drives."""
OPTIONS = "options"
"""Annotation of the Lease: digests of the leader's options."""
BOOT_URL, BMC_NETWORKS = "boot-url", "bmc-networks"
"""Annotations of the Lease, for `metalctl dhcp-config`: base URL of the leader's boot server, and where BMCs may be."""
TENANCY = "tenancy"
"""Annotation of a Server: copy of what its record of tenancy must not forget. It outlives a lost status."""

MACHINE_ID = "machine-id"
"""Annotation of a Server: identifier of its machine that an administrator gave, where the UUID is that of a whole
series of boards and there is no serial number."""
APPROVAL = "approval"
"""Annotation of a BMC that was found by its DHCP lease: pending, serial-number or approved."""

BOUND_TO = "bound-to"
"""Annotation of a BMCSecret without allowedBMCs: the BMCs that use it, as the controllers found them first."""
BOUND_UIDS = "bound-uids"
"""Annotation of such a BMCSecret: its UID and those of these BMCs, since their names can be given again."""

PINNED_CERTIFICATE, PINNED_HOST_KEY = "pinned-certificate", "pinned-ssh-host-key"
"""Annotations of a BMC: the fingerprints that status.certificate and status.sshHostKey pin. They outlive a lost
status. Annotations of its BMCSecret with these names and a digest of the BMC's name outlive the BMC."""
MANAGER_UUID = "manager-uuid"
"""Annotation of a BMCSecret that enrolment created: UUID of the manager that accepted it, for spec.bmcUUID."""

FIELD_MANAGER = "metal-operator"
"""Field manager of what the controllers apply."""

REPORT_BOOT = "boot"
"""Annotation of the ConfigMap with a probe's report: id of the boot window that it belongs to."""
REPORTED_AT = "reported-at"
"""Annotation of that ConfigMap: when the report arrived."""
REPORT_KEY = "report.json"
"""Key of the report in that ConfigMap."""

REPORT_TOKEN_FILE = "/etc/metalprobe/token"  # noqa: S105 - the path of the file, not a secret
"""File on a machine that boots the probe: the token for its report."""


def inventory_name(server: str) -> str:
    """Name of the ConfigMap with the last report of a Server's probe."""
    return f"inventory-{server}"
