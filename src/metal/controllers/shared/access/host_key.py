"""The SSH host key of a BMC, pinned at the first SSH connection of a controller or of `metalctl console`."""

from metal.api.bmc import Pin

ACCEPT = "accept-host-key"
"""Value of the operation annotation that accepts the key in status.sshHostKey.refused."""
TRUSTED = "HostKeyTrusted"
"""Type of the condition."""


def condition_of(pin: Pin, name: str, resource: str, annotation: str) -> tuple[str, bool, str, str]:
    """Type, status, reason and message of the condition. `annotation` is the key of the operation annotation."""
    if not pin.refused:
        return TRUSTED, True, "HostKeyPinned", f"the SSH host key {pin.sha256} is pinned; no other key is trusted"
    text = (
        f"the BMC presented the SSH host key {pin.refused} instead of {pin.sha256}; no password was sent. If the BMC "
        f"was replaced or reset, accept it: kubectl annotate {resource} {name} {annotation}={ACCEPT}; otherwise check "
        "which device has this address"
    )
    return TRUSTED, False, "HostKeyChanged", text
