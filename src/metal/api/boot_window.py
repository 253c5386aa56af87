"""The boot window: one network boot of one server, as Server.status keeps it.

Its transitions are in `metal.machine.boot_window`.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from metal.api.common import ObjectRef
from metal.api.markers import Choice
from metal.api.meta import Model


class Purpose(StrEnum):
    """Purpose of a network boot."""

    DISCOVERY = "Discovery"
    CLAIM = "Claim"
    MAINTENANCE = "Maintenance"
    SANITIZATION = "Sanitization"


class Phase(StrEnum):
    """Progress of a network boot."""

    OPEN = "Open"
    SCRIPT_SERVED = "ScriptServed"
    IGNITION_SERVED = "IgnitionServed"
    SUCCEEDED = "Succeeded"
    CONTESTED = "Contested"
    CLOSED = "Closed"


class Trust(StrEnum):
    """How it is known that the machine itself received the script of a boot, best first."""

    OUT_OF_BAND = "OutOfBand"
    LEASE = "Lease"
    FIRST_REQUEST = "FirstRequest"


class Method(StrEnum):
    """How a machine is brought to boot from the network."""

    VIRTUAL_MEDIA = "VirtualMedia"
    UEFI_HTTP = "UEFIHTTP"
    IPXE = "IPXE"


class BootWindow(Model, frozen=True, kw_only=True):
    """BootWindow is one network boot of a server, during which the boot server serves its script and Ignition."""

    id: str
    """Random identifier of this boot. A report must carry a token of it."""
    purpose: str
    """Purpose of the boot: Discovery, Claim, Maintenance or Sanitization."""
    config_ref: ObjectRef
    """ServerBootConfiguration that is booted."""
    config_uid: str = msgspec.field(name="configUID", default="")
    """UID of the ServerBootConfiguration."""
    config_generation: int = 0
    """The metadata.generation of the ServerBootConfiguration. A different generation requires another boot."""
    image: str = ""
    """Image that is booted."""
    ignition_secret: str | None = None
    """Name of the Secret that holds the Ignition. Empty without Ignition."""
    claim_uid: str = msgspec.field(name="claimUID", default="")
    """UID of the claim. Set when the purpose is Claim."""
    boot_generation: int = 0
    """The spec.bootGeneration of the claim for which this boot is done."""
    phase: str = "Open"
    """Progress of the boot: Open, ScriptServed, IgnitionServed, Succeeded, Contested (a second client requested the
    script, so the boot is repeated) or Closed."""
    opened_at: datetime
    """Time at which the boot was recorded, before the server is powered on."""
    expires_at: datetime
    """Time at which the boot server stops serving this boot."""
    method: Annotated[str, Choice("", *Method)] = ""
    """How the machine is brought to boot: VirtualMedia (a medium that its BMC attaches), UEFIHTTP (its firmware fetches
    a URL) or IPXE (DHCP directs its firmware to iPXE). Empty for a boot of a former version, which was IPXE."""
    minimum_trust: Annotated[str, Choice("", *Trust)] = ""
    """The trust that this boot must reach before anything is served: OutOfBand, Lease or FirstRequest. Recorded when
    the boot starts. Empty for a boot of a former version, which is served as with FirstRequest."""
    client_address: str = ""
    """IP address to which the script was served."""
    trust: Annotated[str, Choice("", *Trust)] = ""
    """How it is known that the machine received the script: OutOfBand (the token went through the BMC), Lease (the
    address was leased to a MAC address that the BMC shows) or FirstRequest (the first client that requested it). Empty
    until the script was served."""
    script_served_at: datetime | None = None
    """Time at which the script was served."""
    ignition_served_at: datetime | None = None
    """Time at which the Ignition was served."""
    reported_at: datetime | None = None
    """Time at which the report of the probe was accepted. For a sanitization, the final report."""
    token_digest: str = ""
    """SHA-256 of the script's token in hexadecimal. Empty once the token is used."""
    image_token_digest: str = ""
    """SHA-256 of the token for the files of the image in hexadecimal. It is valid as long as the boot: an operating
    system fetches its root file system after the Ignition."""
    spent_token_digest: str = ""
    """SHA-256 of the token for which the Ignition was served. Its holder can repeat the request for a short time."""
    ignition_address: str = ""
    """IP address to which the Ignition was served. The operating system may have another lease than the firmware."""
    report_token_digest: str = ""
    """SHA-256 of the report's token in hexadecimal. Empty once the token is used."""
    erasure_asked: str = ""
    """SHA-256 over the drives that the probe sees and asks to erase. Empty while it has not asked, and for a probe of a
    former version, which does not ask."""
    erasure_allowed: str = ""
    """The value of erasureAsked whose drives were looked up: none has data of a claim that exists. Only these drives
    may be erased."""
    receipt: str = ""
    """SHA-256 over the accepted report and its token. A probe that did not receive the answer can send the same report
    again."""
