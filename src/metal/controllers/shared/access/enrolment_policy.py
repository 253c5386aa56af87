"""Where BMCs may be, and which of those that are found by their DHCP lease are enrolled without an approval.

- A BMC outside of `networks` is not contacted, also one that an administrator created.
- With `manual`, a BMC that a lease shows gets a BMC object with the annotation `approval=pending`. Nothing is sent to
  its address until the annotation has another value (`metalctl approve bmc/NAME`). A MAC address in `expected` needs
  no approval.
- Without `manual`, every such BMC is enrolled, unless `expected` has entries: then only those. A MAC address is known
  before the BMC is contacted. A serial number is not: where `expected` has serial numbers, other BMCs are contacted,
  but wait with `approval=serial-number` before a Server is created, until their serial number is in the list or they
  are approved.

The annotation is on the BMC and not on the Endpoint: accounts that report leases may write Endpoints only.
"""

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from metal.api.kinds import METAL_GROUP
from metal.api.names import APPROVAL, BOUND_TO

PENDING, SERIAL_NUMBER, APPROVED = "pending", "serial-number", "approved"
"""Values of the annotation: nothing is sent; the serial number is compared; enrolled."""
PENDING_APPROVAL = "PendingApproval"
"""State of a BMC that waits, and reason of its condition."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAC = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class EnrolmentPolicy:
    """The section `enrolment` of the configuration."""

    networks: tuple[Network, ...] = ()
    """Networks in which BMCs may be; empty for any."""
    manual: bool = False
    """Whether BMCs found by their lease need an approval."""
    expected: Collection[str] = frozenset()
    """MAC addresses and serial numbers, in the form of `plain`."""
    annotation: str = f"{METAL_GROUP}/{APPROVAL}"
    """The annotation of a BMC, with its API group."""
    bound_to: str = f"{METAL_GROUP}/{BOUND_TO}"
    """The annotation of a BMCSecret, with its API group."""

    def outside(self, address: str) -> str:
        """Why a BMC may not be at this address; empty if it may."""
        if not self.networks:
            return ""
        shown = ", ".join(map(str, self.networks))
        advice = f"correct the address, or add its network to enrolment.networks of the configuration ({shown})"
        try:
            found = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return f"the address of the BMC is {address!r}, which is not an IP address: {advice}"
        mapped = getattr(found, "ipv4_mapped", None) or found
        if any(mapped in network for network in self.networks):
            return ""
        return (
            f"the address of the BMC, {address}, is outside of the networks of BMCs, so it is not contacted: {advice}"
        )

    def first_value(self, mac: str) -> str:
        """The annotation of a new BMC with this MAC address; empty if it is enrolled at once."""
        if plain(mac) in self.expected:
            return ""
        if self.manual:
            return PENDING
        if not self.expected:
            return ""
        return SERIAL_NUMBER if any(not _MAC.fullmatch(one) for one in self.expected) else PENDING

    def expects(self, serials: Collection[str]) -> bool:
        """Whether BMCs with these serial numbers need no approval."""
        if not self.manual and not self.expected:
            return True
        return any(serial and plain(serial) in self.expected for serial in serials)

    def value(self, annotations: Mapping[str, str]) -> str:
        """The value of a BMC's annotation, or empty."""
        return annotations.get(self.annotation, "")

    def is_pending(self, annotations: Mapping[str, str]) -> bool:
        """Whether nothing may be sent to a BMC."""
        return self.value(annotations) == PENDING


def plain(text: str) -> str:
    """A MAC address or serial number for comparisons: lower case, without separators."""
    return re.sub(r"[\s:.-]", "", text).lower()


def approval_text(name: str) -> str:
    """What a BMC waits for."""
    return f"approval of this BMC, which was found by its DHCP lease: metalctl approve bmc/{name}"
