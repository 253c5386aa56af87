"""All kinds of the project, for a configurable API group: distributions rename it."""

from dataclasses import dataclass
from typing import Any, TypeVar

from metal.api import columns
from metal.api.bmc import BMC, BMCSecret
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.ipxe import IPXEBootConfig
from metal.api.maintenance import ServerMaintenance
from metal.api.meta import Column, Kind
from metal.api.readiness import ServerReadinessRule
from metal.api.sanitization import SanitizationEvidence
from metal.api.server import Server

METAL_GROUP = "metal.ironcore.dev"
BOOT_GROUP = "boot.ironcore.dev"

T = TypeVar("T")


@dataclass(frozen=True)
class Kinds:
    """The kinds, and the annotation and label keys that contain the API group."""

    group: str
    boot_group: str
    endpoint: Kind[Endpoint]
    bmc: Kind[BMC]
    bmc_secret: Kind[BMCSecret]
    server: Kind[Server]
    claim: Kind[ServerClaim]
    boot_config: Kind[ServerBootConfiguration]
    maintenance: Kind[ServerMaintenance]
    readiness_rule: Kind[ServerReadinessRule]
    evidence: Kind[SanitizationEvidence]
    ipxe: Kind[IPXEBootConfig]

    def key(self, name: str) -> str:
        """An annotation, label or finalizer key of the group, such as metal.ironcore.dev/operation."""
        return f"{self.group}/{name}"

    def all(self) -> tuple[Kind[Any], ...]:
        """Every kind."""
        return (
            self.endpoint, self.bmc, self.bmc_secret, self.server, self.claim, self.boot_config, self.maintenance,
            self.readiness_rule, self.evidence, self.ipxe,
        )  # fmt: skip


def kinds(group: str = METAL_GROUP, boot_group: str = BOOT_GROUP) -> Kinds:
    """The kinds under these API groups."""
    return Kinds(
        group=group,
        boot_group=boot_group,
        endpoint=_kind(group, "endpoints", Endpoint, columns.ENDPOINT, "mep", namespaced=False),
        bmc=_kind(group, "bmcs", BMC, columns.BMC, namespaced=False),
        bmc_secret=_kind(group, "bmcsecrets", BMCSecret, columns.BMC_SECRET, "bmcsec", namespaced=False),
        server=_kind(group, "servers", Server, columns.SERVER, "srv", namespaced=False),
        claim=_kind(group, "serverclaims", ServerClaim, columns.SERVER_CLAIM, "scl"),
        boot_config=_kind(
            group, "serverbootconfigurations", ServerBootConfiguration, columns.SERVER_BOOT_CONFIGURATION, "sbc"
        ),
        maintenance=_kind(group, "servermaintenances", ServerMaintenance, columns.server_maintenance(group), "sm"),
        readiness_rule=_kind(
            group, "serverreadinessrules", ServerReadinessRule, columns.SERVER_READINESS_RULE, namespaced=False
        ),
        ipxe=_kind(boot_group, "ipxebootconfigs", IPXEBootConfig, columns.IPXE_BOOT_CONFIG),
        evidence=_kind(
            group,
            "sanitizationevidences",
            SanitizationEvidence,
            columns.SANITIZATION_EVIDENCE,
            "evidence",
            namespaced=False,
        ),
    )


def _kind(
    group: str, plural: str, struct: type[T], printed: tuple[Column, ...], *short_names: str, namespaced: bool = True
) -> Kind[T]:
    return Kind(
        group,
        "v1alpha1",
        struct.__name__,
        plural,
        struct,
        namespaced=namespaced,
        short_names=short_names,
        categories=("metal",),
        columns=printed,
    )
