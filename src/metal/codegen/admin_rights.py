"""The rights in the API that amount to administration, as a table: docs/rbac.md prints it, and a test compares the
roles that are shipped for tenants and auditors with it.

A verb that changes an object has its equals beside it: `update` does what `patch` does, `deletecollection` what
`delete` does.
"""

from dataclasses import dataclass
from enum import StrEnum

READ = ("get", "list", "watch")
CHANGE = ("patch", "update")
DELETE = ("delete", "deletecollection")
_METAL, _BOOT, _RBAC = "metal.ironcore.dev", "boot.ironcore.dev", "rbac.authorization.k8s.io"


class Scope(StrEnum):
    """Where a right amounts to administration; the value is what the page says of it."""

    EVERYWHERE = ""
    HOME = "in the manager's namespace"
    ENFORCING = "in a namespace that may enforce them"
    TENANT = "in a tenant's namespace"
    OTHER = "of another namespace"


@dataclass(frozen=True)
class AdminRight:
    """Verbs on resources of one API group, and what an account that has one of them can do."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    allows: str
    scope: Scope = Scope.EVERYWHERE

    @property
    def text(self) -> str:
        """The right in words."""
        words = f"{_quoted(self.verbs)} on {_quoted(self.resources)}"
        return f"{words} {self.scope}" if self.scope else words


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


RIGHTS = (
    AdminRight(
        _METAL, ("bmcs",), ("create", *CHANGE),
        "have the credentials of a BMCSecret that allows this BMC, or of an unbound one that is new, sent to an "
        "address of one's choice, without verification (`spec.tls`); approve enrolments. `enrolment.networks` and "
        "`allowedBMCs` limit it. `create` alone: of an unbound new BMCSecret, or of one whose `allowedBMCs` has the "
        "name of a deleted BMC; one that is bound is bound to UIDs",
    ),
    AdminRight(
        _METAL, ("bmcsecrets",), (*READ, *CHANGE),
        "read the passwords of BMCs (a patch returns the object), and with them everything",
    ),
    AdminRight(
        _METAL, ("servers",), ("create", *CHANGE),
        "reboot and power machines, bind a server to a claim, release or park it, accept data that was not erased, "
        "contact a BMC with `spec.bmc` (the rules for `bmcs` apply to it, too)",
    ),
    AdminRight(
        _METAL,
        ("bmcs/status", "bmcsecrets/status", "endpoints/status", "servers/status",
         "serverbootconfigurations/status", "servermaintenances/status", "sanitizationevidences/status"),
        CHANGE, "boot windows, pins, tenancy, owed data and verdicts are kept in status",
    ),
    AdminRight(
        _METAL, ("endpoints",), ("create", *CHANGE),
        "decide which address counts as that of a machine or a BMC: boot scripts, Ignition and passwords are sent "
        "there. The account of the DHCP hook has this right",
    ),
    AdminRight(
        _METAL, ("servermaintenances",), ("create", *CHANGE),
        "boot any image on any machine. In other namespaces: on machines without a claim, and on claimed ones after "
        "the owner's approval, which covers all pending maintenances",
        Scope.ENFORCING,
    ),
    AdminRight(_METAL, ("serverbootconfigurations",), ("create", *CHANGE), "change what a machine boots"),
    AdminRight(
        _BOOT, ("ipxebootconfigs", "ipxebootconfigs/status"), ("create", *CHANGE), "change what a machine boots"
    ),
    AdminRight(
        _METAL, ("serverclaims",), (*CHANGE, *DELETE),
        "boot another image on its machine, approve maintenances; a deletion erases it", Scope.OTHER,
    ),
    AdminRight(
        _METAL, ("serverclaims/status",), CHANGE,
        "pretend that a claim had a Server, also in the own namespace: one that is created again without a record of "
        "its tenant is given to this claim, undiscovered, and one with a record waits (`FormerTenant`) until the claim "
        "is deleted. `spec.serverRef` alone, which `metal-operator-tenant` can write, does neither",
    ),
    AdminRight(
        _METAL, ("sanitizationevidences",), ("create", *CHANGE, *DELETE),
        "hide that data was not erased, or have a machine with a tenant's data discovered as new. `metalctl evidence "
        "verify` finds it",
    ),
    AdminRight(
        _METAL, ("serverreadinessrules",), ("create", *CHANGE, *DELETE), "taint all servers, so that no claim is bound"
    ),
    AdminRight(
        "", ("secrets",), (*READ, "create", *CHANGE, *DELETE),
        "sign evidence, add authorities for BMCs; read Ignition of the probe", Scope.HOME,
    ),
    AdminRight(
        "", ("configmaps",), ("create", *CHANGE, *DELETE),
        "change reports, keys and heads of evidence, pause the managers", Scope.HOME,
    ),
    AdminRight(
        "coordination.k8s.io", ("leases",), ("create", *CHANGE, *DELETE),
        "stop the managers, or have two act; change which Server acts on a machine", Scope.HOME,
    ),
    AdminRight("", ("secrets",), (*READ, *CHANGE), "read its Ignition", Scope.TENANT),
    AdminRight("", ("serviceaccounts/token",), ("create",), "act as the manager", Scope.HOME),
    AdminRight(
        "", ("pods", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "replicationcontrollers"),
        ("create", *CHANGE), "act as the manager: a pod may use its service account", Scope.HOME,
    ),
    AdminRight(
        "", ("pods/exec", "pods/attach"), ("get",), "run commands as the manager", Scope.HOME,
    ),
    AdminRight(
        "apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), ("create", *CHANGE),
        "act as the manager, as with pods", Scope.HOME,
    ),
    AdminRight("batch", ("jobs", "cronjobs"), ("create", *CHANGE), "act as the manager, as with pods", Scope.HOME),
    AdminRight(_RBAC, ("roles", "clusterroles"), ("bind", "escalate"), "give oneself any of these rights"),
    AdminRight("", ("users", "groups", "serviceaccounts"), ("impersonate",), "act as any account, the manager's too"),
    AdminRight(
        "apiextensions.k8s.io", ("customresourcedefinitions",), (*CHANGE, *DELETE),
        "remove fields and validation of all kinds, or all objects of a kind",
    ),
    AdminRight(
        "admissionregistration.k8s.io", ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        ("create", *CHANGE), "read every object as it is written, change or refuse it",
    ),
)  # fmt: skip
"""Verbs on resources, and what their holder can do."""


def rows() -> tuple[tuple[str, str], ...]:
    """The table of the page: the right, and what it allows."""
    return tuple((right.text, right.allows) for right in RIGHTS)
