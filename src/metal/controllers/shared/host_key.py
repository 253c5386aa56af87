"""The SSH host key of a BMC: pinned in status by whoever uses SSH first, a controller or a person at the console."""

from metal.api.bmc import Pin

ACCEPT = "accept-host-key"
"""The operation that trusts the key in status.sshHostKey.refused from now on."""
TRUSTED = "HostKeyTrusted"
"""The condition."""


def judged(pin: Pin, name: str, resource: str, annotation: str) -> tuple[str, bool, str, str]:
    """Type, status, reason and message of the condition. `annotation` is the key of the operation annotation."""
    if not pin.refused:
        return TRUSTED, True, "HostKeyPinned", f"the SSH host key {pin.sha256} is trusted, and no other"
    text = (
        f"the BMC showed the SSH host key {pin.refused} and was {pin.sha256}; no password was sent. If the BMC was "
        f"exchanged or reset, accept it: kubectl annotate {resource} {name} {annotation}={ACCEPT}; otherwise find out "
        "who answers there"
    )
    return TRUSTED, False, "HostKeyChanged", text
