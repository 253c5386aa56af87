"""What a user gets wrong, and is told."""

from tests.conformance.kubectl import manifests
from tests.conformance.kubectl.step import Step

_UNKNOWN = manifests.CLAIM.replace("worker-1", "worker-2").replace("  image:", "  imgae: x\n  image:")

REFUSALS = (
    Step("get server nosuch-RUN", core=True),
    Step("get server nosuch-RUN other-RUN"),
    Step("get servers nosuch-RUN --ignore-not-found"),
    Step("get gizmos", core=True),
    Step("get servers.example.org"),
    Step("describe server nosuch-RUN"),
    Step("get servers --field-selector spec.nosuch=x", core=True),
    Step("get servers -l 'a in b'"),
    Step("get --raw /apis/metal.ironcore.dev/v1alpha1/nosuch"),
    Step("get --raw /nosuch"),
    Step("create -f -", stdin=manifests.SERVER, core=True),
    Step("create -f -", stdin=manifests.SERVER.replace("srv-RUN-a", "Not_A_Name")),
    Step("create -f -", stdin=manifests.CLAIM.replace("worker-1", "w").replace('"On"', "On")),
    Step("create -f -", stdin=manifests.CLAIM.replace("worker-1", "w").replace('"On"', "Maybe"), core=True),
    Step(
        "create -f -",
        stdin=manifests.CLAIM.replace("worker-1", "w").replace("  image: registry.example.com/os/demo:1.0\n", ""),
    ),
    Step(
        "create -f - --validate=false",
        stdin=manifests.CLAIM.replace("worker-1", "w").replace("  image: registry.example.com/os/demo:1.0\n", ""),
    ),
    Step("create -f -", stdin=manifests.SERVER.replace("srv-RUN-a", "srv-RUN-x").replace("systemUUID", "uuid2")),
    Step(
        "create -f -",
        stdin=manifests.SERVER.replace("srv-RUN-a", "srv-RUN-x").replace(
            "  systemUUID", "  uuid: 00000000-7742-3448-3784-823347823834\n  systemUUID"
        ),
    ),
    Step("create -f - --validate=strict", stdin=_UNKNOWN, core=True),
    Step("create -f - --validate=warn", stdin=_UNKNOWN, core=True),
    Step("delete scl worker-2", core=True),
    Step("create -f - --validate=ignore", stdin=_UNKNOWN),
    Step("apply -f -", stdin=_UNKNOWN),
    Step("apply --server-side -f -", stdin=_UNKNOWN.replace("worker-2", "worker-3"), core=True),
    Step("create -f -", stdin=manifests.CLAIM.replace("kind: ServerClaim", "kind: Gizmo"), core=True),
    Step("create -f -", stdin=manifests.CLAIM.replace("v1alpha1", "v9")),
    Step("create -f -", stdin=manifests.CLAIM.replace("kind: ServerClaim\n", "")),
    Step("create -f - -n nowhere-RUN", stdin=manifests.CLAIM, core=True),
    Step("create -f - -n other", stdin=manifests.CLAIM.replace("worker-1", "worker-1\n  namespace: lab-RUN")),
    Step("create -f -", stdin="a: [b"),
    Step("apply -f -", stdin=manifests.CLAIM.replace("matchLabels: {rack: r1}", "matchLabels: {rack: r2}")),
    Step("apply --server-side --field-manager=other -f -", stdin=manifests.CLAIM.replace("demo:1.0", "demo:9")),
    Step("create configmap 'Not Good'"),
    Step("create namespace lab-RUN"),
    Step("create secret generic s --from-literal=a"),
    Step("""patch scl worker-1 --type=merge -p '{"spec":{"power":7}}'""", core=True),
    Step("""patch scl nosuch --type=merge -p '{"spec":{"power":"On"}}'"""),
    Step("""patch scl worker-1 --type=merge -p '{"spec":'""", core=True),
    Step("""patch scl worker-1 --type=merge -p '{"metadata":{"resourceVersion":"1"},"spec":{"power":"Off"}}'"""),
    Step("""patch scl worker-1 --type=merge -p '{"metadata":{"name":"b"}}'"""),
    Step("delete server nosuch-RUN", core=True),
    Step("delete scl --all -n nowhere-RUN"),
    Step("label scl nosuch a=b"),
    Step("scale scl worker-1 --replicas=2"),
    Step("logs worker-1", differs="the embedded API has no pods"),
    Step("wait --for=condition=Ready scl/nosuch --timeout=1s"),
)
