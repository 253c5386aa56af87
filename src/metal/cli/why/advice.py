"""What each wait, failure and refusal means, and what a person can do. A test holds it against the controllers.

`{name}` is the object's name, `{claim}` the claim that holds a server; commands are metalctl's.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """What something means, and what a person can do about it (empty: nothing but wait)."""

    meaning: str
    way_out: str = ""


_FORMER_TENANT = Advice(
    "its Server was deleted while a tenant's data was on the machine, and living claims may be that tenant's",
    "delete those claims and it is erased; or delete the SanitizationEvidence and it counts as a new machine",
)
WAITS: dict[str, Advice] = {
    "BMC": Advice(
        "its BMC does not answer, or not as it should; it is asked again and again",
        "look at the BMC's power, cable, address and credentials: metalctl get bmcs,bmcsecrets",
    ),
    "PowerOn": Advice(
        "the machine was asked to switch on; the request is repeated every half minute until its BMC reports On",
        "nothing yet; when it stays so, look at its power supply and at its BMC: metalctl console {name}",
    ),
    "PowerOff": Advice(
        "the operating system was asked to shut down; the power is cut when it takes too long",
        "nothing, or cut it at once: metalctl power off --force {name}",
    ),
    "BootConfiguration": Advice(
        "the boot server fetches the image and checks the Ignition before the machine is switched on",
        "look at what it says: metalctl describe of the ServerBootConfiguration",
    ),
    "ProbeReport": Advice(
        "the machine boots the probe over the network, which reports what is in it",
        "watch it boot: metalctl console {name}. If it never asks for its script: does DHCP send it to iPXE?",
    ),
    "ClaimBoot": Advice(
        "the machine boots the claim's image over the network, once each time that the claim asks for it",
        "watch it boot: metalctl console {name}. If it never asks for its script: does DHCP send it to iPXE?",
    ),
    "BootConfirmation": Advice(
        "the boot is done, but no DHCP lease shows that it was this very machine; a second asker would show up by then",
        "nothing; to be rid of this wait, have the DHCP server report the leases of hosts (metalctl lease-hook --help)",
    ),
    "BootRetry": Advice(
        "a network boot failed, and the next one begins after a pause",
        "see below why the last one failed; watch the next: metalctl console {name}",
    ),
    "BootOverride": Advice(
        "the BMC keeps its network boot override, with which the tenant's machine would not find its disk",
        "remove the one-time boot setting at the BMC's own page",
    ),
    "Release": Advice(
        "its claim is gone and its reclaim policy is Retain, so it is kept as it is, off",
        "when nothing on it is needed any more, remove spec.serverClaimRef, or set spec.reclaimPolicy to Recycle",
    ),
    "Maintenance": Advice(
        "a maintenance holds it, and decides about its power",
        "end it: metalctl maintain {name} --end",
    ),
    "MaintenanceBoot": Advice(
        "the machine boots the maintenance's image over the network, once",
        "watch it boot: metalctl console {name}",
    ),
    "BMCRestart": Advice(
        "its BMC is being restarted, and is not asked for anything meanwhile",
        "nothing; metalctl describe bmc says more",
    ),
    "FirmwareReset": Advice(
        "its BMC is busy or ill, and is asked again to put the firmware back after a tenant",
        "nothing; when it stays so, look at the BMC. After the deadline the erasure goes on without it",
    ),
    "Sanitization": Advice(
        "its drives are being erased, which takes hours for large ones",
        "watch it: metalctl console {name}; what was erased so far is in metalctl evidence list",
    ),
    "Unpark": Advice(
        "it is parked: its power is somebody else's, and nothing here touches it",
        "manage it again: metalctl unpark {name}",
    ),
    "Repair": Advice("it failed, and a person or a gone cause lets it go on", "metalctl retry {name}"),
    "TakeoverGoAhead": Advice(
        "another operator left it, with a machine that is not as its state says; it is not touched without your word",
        "look at the machine; then let it go on: metalctl retry {name}",
    ),
    "FormerTenant": _FORMER_TENANT,
    "CustomResourceDefinitions": Advice(
        "the API drops fields that the operator writes, because the CRDs are another operator's",
        "metalctl apply -f config/crd --force-conflicts",
    ),
}
"""By the wait's name (status.wait.for)."""

_POWER = Advice("the machine did not reach the power that was asked for", "look at the machine and its BMC")
_ACCESS = Advice("the BMC was not reached for too long", "it goes on by itself as soon as the BMC answers")
_REFUSED = Advice(
    "the BMC refused what the Server's spec asks for, and asking again changes nothing",
    "change the spec, or the BMC's settings or account; then: metalctl retry {name}",
)

FAILURES: dict[str, Advice] = {
    "InvalidSpec": Advice("the Server's spec names no machine", "correct what the message names"),
    "NotSupported": _REFUSED,
    "BadRequest": _REFUSED,
    "Forbidden": _REFUSED,
    "ReportLost": Advice(
        "the probe reported, but the report cannot be read", "discover it again: metalctl retry {name}"
    ),
    "PowerOnTimeout": _POWER,
    "PowerOffTimeout": _POWER,
    "BootConfigurationNotReady": Advice(
        "the boot server could not get image and Ignition ready in time",
        "correct what the message names; it goes on by itself once they are ready",
    ),
    "BootContested": Advice(
        "somebody else on the boot network asked for this machine's boot script, again and again",
        "find the other one, or report leases (metalctl lease-hook --help); then: metalctl retry {name}",
    ),
    "NetworkBootFailed": Advice(
        "several network boots in a row failed",
        "look at its console, its DHCP answers and the boot server's log; then: metalctl retry {name}",
    ),
    "BootOverrideKept": Advice(
        "the BMC keeps its network boot override, and the tenant's machine would not find its disk",
        "remove it at the BMC's own page; it goes on by itself",
    ),
    "FormerTenant": _FORMER_TENANT,
    "SanitizationOwed": Advice(
        "a drive that a tenant used was not erased, and nobody gets the server until it is",
        "see which: metalctl evidence show; repair or attach the drive, then: metalctl retry {name}. To accept the "
        "loss: metal.ironcore.dev/operation=accept-owed-sanitization",
    ),
    "EvidenceLost": Advice(
        "the drives were erased, but the evidence of it is gone", "have them erased again: metalctl retry {name}"
    ),
    "SigningKeyUnusable": Advice(
        "the evidence of an erasure cannot be signed",
        "restore the Secret with the signing key; then: metalctl retry {name}",
    ),
    "HostKeyChanged": Advice(
        "the BMC shows another SSH host key than before",
        "if that is right, annotate the BMC with operation=accept-host-key",
    ),
    "BMCCertificateChanged": Advice(
        "the BMC shows another certificate than the first one, which is trusted",
        "if that is right, annotate the BMC with operation=accept-certificate; it goes on by itself",
    ),
    "BMCTrustOnFirstUseNotPossible": Advice(
        "a BMC without an object of its own cannot have its first certificate trusted",
        "make a BMC object, or set spec.bmc.tls.fingerprint",
    ),
    "BMCConnectionFailed": _ACCESS,
    "BMCTimeout": _ACCESS,
    "BMCTLSFailed": Advice(
        "the BMC's certificate is not the one that is trusted",
        "correct spec.tls of the BMC, or its certificate; it goes on by itself",
    ),
    "BMCAuthenticationFailed": Advice(
        "the BMC refused user name and password; they are not tried again until they change, for fear of a lock-out",
        "correct the BMCSecret; it goes on by itself",
    ),
    "BMCNotFound": Advice(
        "the BMC object is not there, or the BMC does not know this system any more",
        "create the BMC, or correct spec.bmcRef or spec.systemUUID; it goes on by itself",
    ),
    "BMCWrongSystem": Advice(
        "another machine answers at the address of this one's BMC",
        "correct the BMC's address, or spec.systemUUID when the machine was exchanged; it goes on by itself",
    ),
    "BMCConflict": Advice("the BMC was busy with another change for too long", "wait, or restart the BMC"),
    "BMCInternalServerError": Advice("the BMC answers with errors of its own", "restart the BMC"),
    "BMCServiceUnavailable": Advice("the BMC is not ready to answer", "wait, or restart the BMC"),
    "BMCProtocolError": Advice("what answers there does not speak Redfish", "correct the BMC's address and port"),
    "BMCUnknownError": _ACCESS,
    "BMCNotSet": Advice("nothing says how its BMC is reached", "set spec.bmcRef or spec.bmc of the Server"),
    "BMCEndpointNotFound": Advice(
        "the Endpoint with the BMC's address is not there", "create it, or correct endpointRef"
    ),
    "BMCSecretNotSet": Advice("no BMCSecret is named", "set bmcSecretRef.name"),
    "BMCSecretNotFound": Advice("the BMCSecret is not there", "create it with the keys username and password"),
    "BMCAddressMissing": Advice("the BMC's address is not known", "set it, or let the DHCP server report its lease"),
    "BMCProtocolNotSupported": Advice("only Redfish is spoken", "set protocol.name to Redfish"),
    "BMCCANotFound": Advice("the Secret with the certificate authority is not there", "create it with the key ca.crt"),
    "BMCCredentialsInvalid": Advice("the BMCSecret's values cannot be used", "write them again, without line breaks"),
    "BMCCredentialsMissing": Advice("the BMCSecret is not complete", "add the keys username and password"),
}
"""By the reason of status.failure."""

MISFITS: dict[str, Advice] = {
    "NoMatch": Advice("have other labels, or another name", "label a server, or make a claim with another selector"),
    "Claimed": Advice("are held by other claims", "release one: metalctl release {claim}"),
    "NotAvailable": Advice("are not available now", "wait; metalctl why server/{name} says what for"),
    "Cordoned": Advice("are cordoned", "metalctl uncordon {name}"),
    "BMCUnreachable": Advice("have a BMC that does not answer", "metalctl why server/{name}"),
    "Tainted": Advice(
        "have a taint that the claim does not tolerate",
        "add it to spec.tolerations of the claim, or remove it from spec.taints of a server",
    ),
}
"""Why a claim cannot have servers, by the reason of the misfit."""

CLAIMS: dict[str, Advice] = {
    "InvalidSelector": Advice("its selector cannot be read", "make a new claim: a selector does not change"),
    "NamespaceReserved": Advice("the manager's own namespace gets no servers", "make it in another namespace"),
    "ServerLost": Advice("the server that it had is gone or was taken away", "make a new claim"),
    "ServerParked": Advice("its server is parked: its power is somebody else's", "metalctl unpark the server"),
    "ServerInError": Advice("its server is in Error", "metalctl why the server says what to do"),
    "BootConfigurationNameTaken": Advice(
        "another object has the boot configuration of its name", "delete that one, or make a claim of another name"
    ),
    "ServerNotFound": Advice("the server that it names does not exist", "create it, or make a claim for another one"),
    "ChangedAfterBoot": Advice(
        "image or Ignition changed after the machine had booted, and the running system is left alone",
        "set spec.bootGeneration of {name} as it says, to have them booted over the network, once; or make a new claim",
    ),
    "NetworkBootRequested": Advice(
        "its owner raised spec.bootGeneration, so the machine is shut down and boots over the network once more",
        "nothing; to have it boot its disk instead, set spec.bootGeneration of {name} to its status.bootGeneration",
    ),
    "NotBooted": Advice("its image has not booted yet", ""),
    "PowerPending": Advice("the machine's power is not yet what the claim wants", ""),
}
"""What else a claim says of itself, by the reason of a condition that is False."""
