"""What a user looks at: lists, objects, columns, descriptions, schemas, discovery."""

from tests.conformance.kubectl import manifests
from tests.conformance.kubectl.step import Step

_WORDS = "the descriptions of metadata fields are shorter in the embedded API"
_OFF = '{"status":{"state":"Available","powerState":"Off"}}'
OURS = (
    r"^(NAME|bmcs|bmcsecrets|endpoints +mep|servers|serverclaims|serverbootconfigurations|ipxebootconfigs|configmaps|"
    r"events|namespaces|secrets|serviceaccounts|leases|customresourcedefinitions|roles|rolebindings|clusterroles|"
    r"clusterrolebindings) .*"
)

DISCOVERY = (
    Step("version", blur="GitCommit:.*", core=True),  # which kubectl 1.27 prints, of itself and of the server
    Step("version -o json", blur=r'(?s)"serverVersion".*'),
    Step("create namespace lab-RUN", core=True),
    Step("api-resources --api-group=metal.ironcore.dev", core=True),
    Step("api-resources --api-group=metal.ironcore.dev -o wide"),
    Step("api-resources --api-group=boot.ironcore.dev --no-headers"),
    Step("api-resources --namespaced=false --api-group=metal.ironcore.dev -o name", shuffled=True),
    Step("api-resources --categories=metal -o name", shuffled=True, core=True),
    Step("api-resources -o wide", only=OURS),
    Step("api-versions", only=r"ironcore|^v1$|coordination.*v1$|apiextensions|events|rbac", core=True),
    Step("get --raw /apis/metal.ironcore.dev", json=True),
    Step("get --raw /apis/metal.ironcore.dev/v1alpha1", json=True, shuffled=True),
    Step("get --raw /healthz"),
    Step("get --raw /readyz"),
    Step("explain server", differs=_WORDS),
    Step("explain server", only=r"^\w|<\w"),
    Step("explain server.spec", core=True),
    Step("explain serverclaim.spec.power"),
    Step("explain srv.status.conditions --recursive"),
    Step("explain scl --recursive", core=True),
    Step("explain bmcs.spec.access --api-version=metal.ironcore.dev/v1alpha1"),
    Step("explain server.metadata.ownerReferences", only=r"^\w|<\w"),
    Step("explain server.spec.nosuch"),
    Step("explain nosuch", core=True),
    Step("explain configmap.immutable", only=r"^\w|<\w"),
    Step("explain secret --recursive", only=r"^\w|<\w"),
)

LISTS = (
    Step("create -f -", stdin=manifests.SERVERS, core=True),
    Step("create -f -", stdin=manifests.BMC, core=True),
    Step("create -f -", stdin=manifests.CLAIM, core=True),
    Step("create -f -", stdin=manifests.IPXE, core=True),
    Step("get servers -l run=RUN", core=True),
    Step("get servers -l run=RUN -o wide", core=True),
    Step("get servers -l run=RUN -o name", core=True),
    Step("get servers -l run=RUN --no-headers --show-labels"),
    Step("get servers -l run=RUN -L rack,run", core=True),
    Step("get servers -l 'run=RUN,rack notin (r1)'", core=True),
    Step("get servers -l 'run=RUN,!rack' -o jsonpath='{.items[*].metadata.name}'"),
    Step("get servers -l run=RUN --sort-by=.spec.systemUUID", core=True),
    Step("get servers -l run=RUN --sort-by='{.metadata.name}' -o custom-columns=N:.metadata.name,B:.spec.bmcRef.name"),
    Step("get servers -l run=RUN --field-selector metadata.name=srv-RUN-b", core=True),
    Step("get servers -l run=RUN --field-selector spec.power=On"),
    Step("get servers -l run=RUN --chunk-size=1 -o name", core=True),
    Step("get servers -l run=RUN -o yaml", core=True),
    Step("get servers -l run=RUN --show-kind"),
    Step("get server srv-RUN-a -o yaml"),
    Step("get server srv-RUN-a -o yaml --show-managed-fields", core=True),
    Step("get srv srv-RUN-a srv-RUN-c -o json", core=True),
    Step("get server/srv-RUN-a bmc/bmc-RUN"),
    Step("get servers.v1alpha1.metal.ironcore.dev srv-RUN-a"),
    Step("get server srv-RUN-a -o jsonpath='{.spec.bmcRef.name}{\"\\n\"}'", core=True),
    Step("get server srv-RUN-b -o go-template='{{range .spec.taints}}{{.key}}{{end}}'", core=True),
    Step("get servers,bmcs,endpoints.metal.ironcore.dev -l run=RUN", core=True),
    Step("get bmc,bmcsecret -l run=RUN -o wide"),
    Step(
        "get metal -l run=RUN", shuffled=True, core=True
    ),  # kubectl 1.27 asks in the order of discovery: none is promised
    Step("get metal", only=r"worker-1|lab-RUN"),
    Step("get scl,ipxebootconfigs"),
    Step("get scl -A --field-selector metadata.namespace=lab-RUN", core=True),
    Step("get scl -A -l run=nobody"),
    Step("get scl -n nowhere-RUN", core=True),
    Step("get scl -l run=nobody"),
    Step("get -f - -o name", stdin=manifests.BMC),
    Step("get --raw /apis/metal.ironcore.dev/v1alpha1/servers/srv-RUN-a", json=True),
    Step(
        "get --raw /apis/metal.ironcore.dev/v1alpha1/servers?labelSelector=run%3DRUN&limit=1",
        json=True,
        blur='"continue": ".*"',
    ),
    Step("describe server srv-RUN-a", core=True),
    Step("describe servers -l run=RUN,rack=r2"),
    Step("describe scl worker-1", core=True),
    Step("describe bmc bmc-RUN"),
    Step("get crd servers.metal.ironcore.dev"),
    Step(
        "get crd servers.metal.ironcore.dev -o yaml --show-managed-fields=false", blur=r"(?s)^.*?spec:|storedVersions.*"
    ),
    Step("get crd servers.metal.ironcore.dev -o jsonpath='{.status.acceptedNames}'"),
    Step(
        "get servers -l run=RUN -w",
        until=6,
        core=True,
        meanwhile=(
            Step("label server srv-RUN-a seen=1"),
            Step(f"patch server srv-RUN-b --subresource=status --type=merge -p '{_OFF}'"),
        ),
    ),
)
