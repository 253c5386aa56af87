"""All kinds of the project under one API group, which is a setting: distributions rename it."""

from dataclasses import dataclass

from metal.api.bmc import BMC, BMCSecret
from metal.api.claim import ServerBootConfiguration, ServerClaim
from metal.api.endpoint import Endpoint
from metal.api.ipxe import IPXEBootConfig
from metal.api.meta import Kind
from metal.api.server import Server

METAL_GROUP = "metal.ironcore.dev"
BOOT_GROUP = "boot.ironcore.dev"


@dataclass(frozen=True)
class Kinds:
    """The kinds, and the annotation and label keys that carry the group's name."""

    group: str
    boot_group: str
    endpoint: Kind[Endpoint]
    bmc: Kind[BMC]
    bmc_secret: Kind[BMCSecret]
    server: Kind[Server]
    claim: Kind[ServerClaim]
    boot_config: Kind[ServerBootConfiguration]
    ipxe: Kind[IPXEBootConfig]

    def key(self, name: str) -> str:
        """An annotation, label or finalizer key of the group, such as metal.ironcore.dev/operation."""
        return f"{self.group}/{name}"


def kinds(group: str = METAL_GROUP, boot_group: str = BOOT_GROUP) -> Kinds:
    """The kinds under these API groups."""
    version = "v1alpha1"
    return Kinds(
        group=group,
        boot_group=boot_group,
        endpoint=Kind(group, version, "Endpoint", "endpoints", Endpoint, namespaced=False, short_names=("mep",)),
        bmc=Kind(group, version, "BMC", "bmcs", BMC, namespaced=False),
        bmc_secret=Kind(
            group, version, "BMCSecret", "bmcsecrets", BMCSecret, namespaced=False, short_names=("bmcsec",)
        ),
        server=Kind(group, version, "Server", "servers", Server, namespaced=False, short_names=("srv",)),
        claim=Kind(group, version, "ServerClaim", "serverclaims", ServerClaim, short_names=("scl",)),
        boot_config=Kind(
            group, version, "ServerBootConfiguration", "serverbootconfigurations", ServerBootConfiguration,
            short_names=("sbc",),
        ),
        ipxe=Kind(boot_group, version, "IPXEBootConfig", "ipxebootconfigs", IPXEBootConfig),
    )  # fmt: skip
