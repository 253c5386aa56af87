"""The meaning of each wait, failure and mismatch, and what an administrator can do about it.

A message of the API that names the way out comes first (`remedies`); the tables have what no message says. A test
checks that they know every wait, reason and mismatch of the controllers.

`{name}` is the name of the object, `{claim}` the claim that holds a server. Commands are those of metalctl.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """The meaning of a wait or a reason, and what to do about it. Empty `way_out`: wait, or follow the message."""

    meaning: str
    way_out: str = ""


_FORMER_TENANT = Advice(
    "data of a claim is on the drives, and it is ambiguous whether that claim still exists: its Server was deleted, or "
    "a claim with another UID reports to be bound to this server",
    "follow the message to keep the data; where it is not needed, delete the claims to have the drives erased",
)
_WATCH_BOOT = "watch the boot: metalctl console {name}. If no script is requested, check that DHCP directs it to iPXE"

WAITS: dict[str, Advice] = {
    "BMC": Advice(
        "the BMC does not answer or reports an error; the request is repeated",
        "check the BMC's power, cable, address and credentials: metalctl get bmcs,bmcsecrets",
    ),
    "BMCOperation": Advice(
        "the BMC answers, and one operation on it fails; it is repeated with growing pauses, and the server continues "
        "when that operation succeeds",
        "check the log of the BMC; a restart of the BMC often helps: metalctl get bmcs. To try again at once: metalctl "
        "retry {name}",
    ),
    "BMCBusy": Advice(
        "the BMC or the host is not ready for the operation, for instance because the host is in POST; the operation "
        "is repeated with growing pauses",
        "if it takes long, check the machine's output: metalctl console {name}",
    ),
    "PowerOn": Advice(
        "the BMC was asked to power the machine on; the request is repeated until the BMC reports On",
        "if it takes long, check the power supply, and the machine's output: metalctl console {name}",
    ),
    "PowerOff": Advice(
        "the operating system was asked to shut down; power is cut when the shutdown takes too long",
        "cut the power now: metalctl power off --force {name}",
    ),
    "BootConfiguration": Advice(
        "the boot server downloads the image and validates the Ignition before the machine is powered on"
    ),
    "ProbeReport": Advice(
        "the machine boots the probe image over the network; the probe reports the hardware", _WATCH_BOOT
    ),
    "ClaimBoot": Advice(
        "the machine boots the claim's image over the network, once for each request of the claim", _WATCH_BOOT
    ),
    "BootConfirmation": Advice(
        "the boot is complete, but no DHCP lease shows that this machine was served; another client that requests the "
        "same script would be noticed during the wait",
        "to avoid this wait, report the leases of hosts from the DHCP server (metalctl lease-hook --help)",
    ),
    "BootTrust": Advice(
        "the site or the claim requires a trust that no network boot of this server can have; it is not powered on",
        "follow the message: have the BMC show its MAC addresses, or change boot.minimumTrust",
    ),
    "BootRetry": Advice(
        "a network boot failed, and the next one starts after a pause", "watch the next boot: metalctl console {name}"
    ),
    "BootOverride": Advice(
        "the BMC keeps its network boot override; with it the machine would boot from the network, not from its disk",
        "remove the one-time boot setting in the BMC's own interface",
    ),
    "Release": Advice(
        "the claim was deleted and the reclaim policy is Retain; the server was sanitized and stays off",
        "remove spec.serverClaimRef, or set spec.reclaimPolicy to Recycle",
    ),
    "Maintenance": Advice(
        "a ServerMaintenance holds the server and controls its power", "end it: metalctl maintain {name} --end"
    ),
    "MaintenanceBoot": Advice(
        "the machine boots the image of the maintenance over the network, once",
        "watch the boot: metalctl console {name}",
    ),
    "BMCRestart": Advice("the BMC is restarting; no requests are sent to it in the meantime"),
    "FirmwareReset": Advice(
        "the BMC does not accept the firmware reset at present; the request is repeated until the deadline, then the "
        "sanitization continues without it",
        "if it takes long, check the BMC: metalctl get bmcs",
    ),
    "Sanitization": Advice(
        "the drives are being erased, which takes hours for large drives",
        "watch it: metalctl console {name}; the progress of each drive is in metalctl evidence list",
    ),
    "Unpark": Advice(
        "the server is parked; the operator does not control its power", "manage it again: metalctl unpark {name}"
    ),
    "Repair": Advice(
        "the server failed; it continues when the cause is gone or a retry is requested", "metalctl retry {name}"
    ),
    "TakeoverGoAhead": Advice(
        "another operator managed the server, and its power does not match its state; nothing is changed without "
        "confirmation",
        "check the machine, then confirm: metalctl retry {name}",
    ),
    "ErasureWave": Advice(
        "another operator left this server Available; what is on its drives is unknown, so they are erased before a "
        "claim gets it, a few servers at a time",
        "to erase more at the same time, raise adoption.wave; to give them away as they are, set adoption.unknownData "
        "to Trust",
    ),
    "FormerTenant": _FORMER_TENANT,
    "DriveOwed": Advice(
        "a drive of this server was in another Server, and a claim that exists may have data on it; the machine is not "
        "booted or erased",
        "if the mainboard was replaced, correct spec.systemUUID of the former Server and delete this one; else return "
        "the drive (and, if only the probe saw it, request a retry), or delete the claim. To accept: "
        "metal.ironcore.dev/operation=accept-owed-drives",
    ),
    "DuplicateSystem": Advice(
        "another Server describes the same physical machine; only one of them acts on it, this one sends nothing to "
        "the BMC",
        "where the BMC was replaced, move spec.bmcRef; then delete the Server that is not in charge",
    ),
    "MachineIdentity": Advice(
        "which physical machine this is cannot be told, or it may be the machine of another Server with a tenant",
        "follow the message: correct spec.systemUUID, or annotate the Server with metal.ironcore.dev/machine-id=NAME",
    ),
    "CustomResourceDefinitions": Advice(
        "the API server drops fields that the operator writes, because the CRDs are those of another operator",
        "metalctl apply -f config/crd --force-conflicts",
    ),
}
"""By the name of the wait (status.wait.for)."""

DEVICES: dict[str, Advice] = {
    "DuplicateBMC": Advice(
        "another BMC object describes the same BMC and is in charge of it; nothing is sent to it for this one",
        "delete this one: metalctl delete bmc/{name}; to keep this one instead, set spec.bmcRef.name of the Servers of "
        "the other one to {name}",
    ),
    "PendingApproval": Advice(
        "it was found by its DHCP lease, and the site approves BMCs by hand", "metalctl approve bmc/{name}"
    ),
}
"""Of BMCs and Endpoints, by condition or state."""

_POWER = Advice(
    "the machine did not reach the requested power state", "check the machine and its BMC: metalctl console {name}"
)
_ACCESS = Advice(
    "the BMC was unreachable for too long; the server continues when the BMC answers",
    "check the BMC's power, cable and address: metalctl get bmcs",
)
_REFUSED = Advice(
    "the BMC rejected what the spec of the Server requests; repeating the request would not help",
    "change the spec of the Server, or the settings or the account of the BMC; then: metalctl retry {name}",
)

FAILURES: dict[str, Advice] = {
    "InvalidSpec": Advice("the spec of the Server is invalid", "correct the fields that the message names"),
    "NotSupported": _REFUSED,
    "BadRequest": _REFUSED,
    "Forbidden": _REFUSED,
    "ReportLost": Advice(
        "the report of the probe was received but cannot be read", "discover the server again: metalctl retry {name}"
    ),
    "IdentityMismatch": Advice(
        "the report of the discovery has network interfaces that the BMC does not show; another machine may have sent "
        "it, so it is not used",
        "check which machine answered, then: metalctl retry {name}. If all of the interfaces belong to this server: "
        "metal.ironcore.dev/operation=accept-reported-interfaces",
    ),
    "PowerOnTimeout": _POWER,
    "PowerOffTimeout": _POWER,
    "BootConfigurationNotReady": Advice(
        "the boot server did not have the image and the Ignition ready before the deadline; the server continues when "
        "they are ready",
        "correct what the message names",
    ),
    "BootContested": Advice(
        "another client on the boot network requested the boot script of this machine repeatedly",
        "find the other client, or report leases (metalctl lease-hook --help); then: metalctl retry {name}",
    ),
    "NetworkBootFailed": Advice(
        "several consecutive network boots failed",
        "check the machine's console, the DHCP answers and the log of the boot server; then: metalctl retry {name}",
    ),
    "BootTrustTooLow": Advice(
        "the site or the claim requires a trust that no network boot of this server can have",
        "follow the message, then: metalctl retry {name}",
    ),
    "BootOverrideKept": Advice(
        "the BMC keeps its network boot override; with it the machine would boot from the network, not from its disk",
        "remove the one-time boot setting in the BMC's own interface",
    ),
    "FormerTenant": _FORMER_TENANT,
    "SanitizationOwed": Advice(
        "a drive that a claim used was not erased; the server cannot be claimed until it is",
        "find the drive: metalctl evidence show; repair or attach it, then: metalctl retry {name}. To accept the "
        "data loss risk: metal.ironcore.dev/operation=accept-owed-sanitization",
    ),
    "EvidenceLost": Advice(
        "the drives were erased, but the evidence was deleted", "erase the drives again: metalctl retry {name}"
    ),
    "StatusOutdated": Advice(
        "a backup from before the last claim was restored, and that claim is gone; the machine is not changed",
        "erase its data: metalctl retry {name}. To keep it, first refer the Server to a claim as status.failure says",
    ),
    "SigningKeyUnusable": Advice(
        "the evidence cannot be signed", "restore the Secret with the signing key; then: metalctl retry {name}"
    ),
    "HostKeyChanged": Advice(
        "the BMC presents an SSH host key other than the pinned one",
        "if the change is expected, annotate the BMC with operation=accept-host-key",
    ),
    "BMCCertificateChanged": Advice(
        "the BMC presents a TLS certificate other than the pinned one",
        "if the change is expected, annotate the BMC with operation=accept-certificate",
    ),
    "BMCTrustOnFirstUseNotPossible": Advice(
        "a certificate can be pinned at first use only for a BMC object",
        "create a BMC object, or set spec.bmc.tls.fingerprint",
    ),
    "BMCConnectionFailed": _ACCESS,
    "BMCTimeout": _ACCESS,
    "BMCTLSFailed": Advice(
        "the TLS certificate of the BMC is not trusted", "correct spec.tls of the BMC, or install another certificate"
    ),
    "BMCAuthenticationFailed": Advice(
        "the BMC rejected the user name and the password; they are not tried again until they change, so that the "
        "account is not locked",
        "correct the BMCSecret",
    ),
    "BMCNotFound": Advice(
        "the BMC object does not exist, or the BMC no longer reports this system",
        "create the BMC, or correct spec.bmcRef or spec.systemUUID",
    ),
    "BMCManagerNotFound": Advice(
        "no manager of the BMC has the UUID in spec.bmcUUID of the BMC; its address may lead to another BMC",
        "correct the address of the BMC; if the BMC or its mainboard was replaced, correct spec.bmcUUID",
    ),
    "BMCWrongSystem": Advice(
        "another machine answers at the address of the BMC",
        "correct the address of the BMC; if the machine was replaced, correct spec.systemUUID",
    ),
    "BMCConflict": Advice("the BMC was busy with another change for too long", "restart the BMC"),
    "BMCInternalServerError": Advice("the BMC answers with internal errors", "restart the BMC"),
    "BMCServiceUnavailable": Advice("the BMC is not ready to answer", "restart the BMC"),
    "BMCProtocolError": Advice(
        "the service at the address of the BMC is not Redfish", "correct the address and the port of the BMC"
    ),
    "BMCUnknownError": _ACCESS,
    "BMCNotSet": Advice("the Server has no BMC", "set spec.bmcRef or spec.bmc of the Server"),
    "BMCEndpointNotFound": Advice(
        "the Endpoint with the address of the BMC does not exist", "create it, or correct endpointRef"
    ),
    "BMCSecretNotAllowed": Advice(
        "the BMCSecret does not allow this BMC to use it, so no password is sent",
        "list all BMCs that may use the BMCSecret in its allowedBMCs",
    ),
    "BMCSecretNotBound": Advice("the BMCSecret is being bound to the BMCs that use it"),
    "BMCSecretNotSet": Advice("no BMCSecret is set", "set bmcSecretRef.name"),
    "BMCSecretNotFound": Advice("the BMCSecret does not exist", "create it with the keys username and password"),
    "BMCAddressMissing": Advice(
        "the address of the BMC is not known", "set it, or let the DHCP server report the lease of the BMC"
    ),
    "BMCPortNotSet": Advice("the port of the BMC's management service is 0", "set protocol.port, usually to 443"),
    "BMCAddressNotAllowed": Advice(
        "the address of the BMC is in no network that the configuration allows for BMCs, so it is not contacted",
        "correct the address, or add its network to enrolment.networks of the configuration",
    ),
    "BMCPendingApproval": Advice(
        "the BMC was found by its DHCP lease and waits for an approval; nothing is sent to its address",
        "metalctl approve bmc/NAME",
    ),
    "BMCTLSNotVerified": Advice(
        "no certificate of the BMC is verified or pinned, so no password is sent",
        "create a BMC object and set spec.bmcRef, or set spec.bmc.tls.fingerprint",
    ),
    "BMCProtocolNotSupported": Advice("only Redfish is supported", "set protocol.name to Redfish"),
    "BMCCANotFound": Advice(
        "the Secret with the certificate authority does not exist", "create it with the key ca.crt"
    ),
    "BMCCredentialsInvalid": Advice(
        "the values of the BMCSecret cannot be used", "write them again, without line breaks"
    ),
    "BMCCredentialsMissing": Advice("the BMCSecret is incomplete", "add the keys username and password"),
}
"""By the reason of status.failure."""

MISMATCHES: dict[str, Advice] = {
    "NoMatch": Advice("do not match the claim's selector or server name", "label a server, or create another claim"),
    "Claimed": Advice("are bound to other claims", "release one: metalctl release {claim}"),
    "NotAvailable": Advice("are not available", "see what a server waits for: metalctl why server/{name}"),
    "Cordoned": Advice("are cordoned", "metalctl uncordon {name}"),
    "NotManaged": Advice("are not managed by the operator", "remove the annotation operation of server {name}"),
    "NotErased": Advice(
        "have drives with data of another namespace (taint data-not-erased)",
        "have one erased: kubectl annotate servers {name} metal.ironcore.dev/operation=sanitize",
    ),
    "OlderClaimFirst": Advice("are free, and an older claim gets them first", "wait, or delete the older claim"),
    "BMCUnreachable": Advice("have an unreachable BMC", "metalctl why server/{name}"),
    "Tainted": Advice(
        "have a taint that the claim does not tolerate",
        "add a toleration to spec.tolerations of the claim, or remove the taint from spec.taints of a server",
    ),
}
"""Why a claim cannot bind servers, by the reason of the mismatch."""

CLAIMS: dict[str, Advice] = {
    "InvalidSelector": Advice("the selector is invalid", "create another claim: the selector is immutable"),
    "NamespaceReserved": Advice(
        "claims in the namespace of the manager get no servers", "create the claim in another namespace"
    ),
    "ServerLost": Advice("the server of the claim was deleted or unbound", "create another claim"),
    "ServerParked": Advice(
        "the server is parked; the operator does not control its power", "unpark the server: metalctl unpark SERVER"
    ),
    "ServerNotManaged": Advice(
        "an annotation of the server makes the operator ignore it", "remove the annotation operation of the server"
    ),
    "ServerInError": Advice("the server is in state Error", "see the server below, or metalctl why server/NAME"),
    "BootConfigurationNameTaken": Advice(
        "another object has the name of the claim's boot configuration",
        "delete that object, or create a claim with another name",
    ),
    "ServerNotFound": Advice(
        "the server that the claim names does not exist", "create it, or create a claim for another server"
    ),
    "ChangedAfterBoot": Advice(
        "the image or the Ignition changed after the machine had booted; the running system is not changed",
        "increase spec.bootGeneration of {name} to boot them over the network once, or create another claim",
    ),
    "NetworkBootRequested": Advice(
        "spec.bootGeneration was increased; the machine is shut down and boots over the network once more",
        "to boot from the disk instead, set spec.bootGeneration of {name} to its status.bootGeneration",
    ),
    "NotBooted": Advice("the image of the claim has not booted yet"),
    "WeakerThanRequired": Advice(
        "the sanitizationPolicy of the claim is weaker than the one that applies to its server",
        "set spec.sanitizationPolicy of {name} to the policy that applies, or to the empty string",
    ),
    "PowerPending": Advice("the power of the machine is not yet spec.power of the claim"),
}
"""What a claim reports, by the reason of a condition with status False."""
