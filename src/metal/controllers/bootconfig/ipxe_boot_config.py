"""The IPXEBootConfig of a boot configuration: its desired content, and whether it differs."""

from typing import Any

import msgspec

from metal.api.claim import ServerBootConfiguration
from metal.api.ipxe import IPXEBootConfig, IPXEBootConfigSpec
from metal.api.kinds import Kinds
from metal.api.server import Server
from metal.boot.plan import Plan
from metal.kube.meta.ownership import controller_reference, is_controlled_by
from metal.machineapi.bootserver.bootable import ARCHITECTURE, COMMAND_LINE, GENERATION

_FORMER = "amd64"
"""The architecture for which former versions pinned all images."""


def desired(
    config: ServerBootConfiguration, server: Server, plan: Plan, base_url: str, kinds: Kinds, architecture: str
) -> dict[str, Any]:
    """The object to apply: same name and namespace, owned by the boot configuration."""
    spec = IPXEBootConfigSpec(
        system_uuid=server.uuid,
        system_ips=_addresses(server),
        image=config.spec.image,
        kernel_url=plan.kernel.url(base_url),
        initrd_url=plan.initramfs.url(base_url),
        squashfs_url=plan.squashfs.url(base_url) if plan.squashfs else "",
        ignition_secret_ref=config.spec.ignition_secret_ref,
    )
    annotations = {
        COMMAND_LINE: plan.command_line, GENERATION: str(config.metadata.generation), ARCHITECTURE: architecture,
    }  # fmt: skip
    return {
        "metadata": {
            "name": config.metadata.name,
            "namespace": config.metadata.namespace,
            "ownerReferences": [controller_reference(config, kinds.boot_config)],
            "annotations": {f"{kinds.boot_group}/{name}": value for name, value in annotations.items()},
        },
        "spec": msgspec.to_builtins(spec),
    }


def differs(child: IPXEBootConfig | None, config: ServerBootConfiguration, wanted: dict[str, Any]) -> bool:
    """Whether the IPXEBootConfig must be applied."""
    if child is None or not is_controlled_by(child, config):
        return True
    annotations = child.metadata.annotations
    if any(annotations.get(key) != value for key, value in wanted["metadata"]["annotations"].items()):
        return True
    return child.spec != msgspec.convert(wanted["spec"], IPXEBootConfigSpec)


def pins(child: IPXEBootConfig | None, config: ServerBootConfiguration, kinds: Kinds, architecture: str) -> bool:
    """Whether it holds the digest that this generation was resolved to; the tag may have moved since."""
    return (
        child is not None
        and is_controlled_by(child, config)
        and child.spec.image == config.spec.image
        and child.metadata.annotations.get(f"{kinds.boot_group}/{GENERATION}") == str(config.metadata.generation)
        and child.metadata.annotations.get(f"{kinds.boot_group}/{ARCHITECTURE}", _FORMER) == architecture
    )


def _addresses(server: Server) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ip for interface in server.status.network_interfaces for ip in interface.ips))
