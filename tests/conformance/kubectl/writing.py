"""What a user changes: apply, diff, edit, patch, label, annotate, replace, delete, wait."""

from tests.conformance.kubectl import manifests
from tests.conformance.kubectl.step import Step

_LARGER = manifests.SERVER.replace('power: "Off"', 'power: "On"')
_PORT = manifests.CLAIM.replace("demo:1.0", "demo:2.0")
_HEADS = r"(?m)^(diff|---|\+\+\+) .*$"
_READY = (
    '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Done",'
    '"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}'
)

APPLY = (
    Step("apply -f -", stdin=manifests.SERVERS, core=True),  # was created without apply: a warning
    Step("apply -f -", stdin=manifests.SERVERS, core=True),
    Step("apply -f - --dry-run=server", stdin=_LARGER, core=True),
    Step("apply -f - --dry-run=client", stdin=_LARGER),
    Step("apply -f - --dry-run=server -o yaml", stdin=_LARGER),
    Step("diff -f -", stdin=_LARGER, blur=_HEADS, core=True),
    Step("diff -f -", stdin=manifests.SERVERS),
    Step("diff --server-side -f -", stdin=_LARGER, blur=_HEADS, core=True),
    Step("apply -f -", stdin=_LARGER, core=True),
    Step("get server srv-RUN-a -o yaml --show-managed-fields"),
    Step("apply view-last-applied server srv-RUN-a"),
    Step("apply -f -", stdin=manifests.CLAIM, core=True),
    Step("apply --server-side -f -", stdin=manifests.IPXE, core=True),
    Step("apply --server-side --field-manager=ci -f -", stdin=_PORT),
    Step("apply --server-side --field-manager=ci --force-conflicts -f -", stdin=_PORT, core=True),
    Step("apply --server-side --field-manager=ci -f -", stdin=_PORT),
    Step("apply --server-side --dry-run=server -f - -o jsonpath={.spec.image}", stdin=_PORT.replace("2.0", "3.0")),
    Step("get scl worker-1 -o yaml --show-managed-fields", core=True),
    Step("apply -f -", stdin=manifests.CONFIG, core=True),
    Step("apply -f -", stdin=manifests.CONFIG.replace('b: "2"', 'c: "3"'), core=True),
    Step("apply -f - -o yaml", stdin=manifests.CONFIG),
    Step("apply --server-side -f -", stdin=manifests.CONFIG.replace('"2"', '"4"')),
    Step("apply --server-side --force-conflicts -f -", stdin=manifests.CONFIG.replace('"2"', '"4"')),
)

CHANGES = (
    Step("edit server srv-RUN-b", edit="s/effect: NoBind/effect: Evict/", core=True),
    Step("edit server srv-RUN-b", edit="s/nosuchtext/x/"),
    Step("edit server srv-RUN-b", edit="s/effect: Evict/effect: Sometimes/"),
    Step("edit scl worker-1 -o json", edit="s/demo:2.0/demo:4.0/"),
    Step("edit configmap settings", edit='s/b: "4"/b: "5"/'),
    Step("get server srv-RUN-b -o jsonpath={.spec.taints}"),
    Step("""patch server srv-RUN-a --type=merge -p '{"spec":{"indicatorLED":"Blinking"}}'"""),
    Step("""patch server srv-RUN-a --type=merge -p '{"spec":{"indicatorLED":"Blinking"}}'"""),
    Step(
        """patch server srv-RUN-b --type=json -p '[{"op":"replace","path":"/spec/taints/0/key","value":"x"}]' -o yaml"""
    ),
    Step(
        """patch server srv-RUN-b --type=json -p '[{"op":"test","path":"/spec/taints/0/key","value":"y"}]'""", core=True
    ),
    Step("""patch server srv-RUN-b --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'"""),
    Step("""patch server srv-RUN-b -p '{"spec":{"power":"On"}}'"""),
    Step("""patch configmap settings -p '{"data":{"a":null,"d":"6"}}' -o jsonpath='{.data}'""", core=True),
    Step("""patch serviceaccount default -p '{"secrets":[{"name":"x"}]}'"""),
    Step(f"patch server srv-RUN-a --subresource=status --type=merge -p '{_READY}'", core=True),
    Step("get server srv-RUN-a --subresource=status -o jsonpath={.status.conditions}"),
    Step("""patch scl worker-1 --subresource=status --type=merge -p '{"status":{"phase":"Odd"}}'""", core=True),
    Step("label server srv-RUN-b rack=r3"),
    Step("label server srv-RUN-b rack=r3 --overwrite", core=True),
    Step("label servers -l run=RUN zone=z1"),
    Step("label server srv-RUN-b zone-"),
    Step("label server srv-RUN-b 'zone=not a label'"),
    Step("label server srv-RUN-b --list", shuffled=True),
    Step("annotate server srv-RUN-b metal.ironcore.dev/operation=ignore", core=True),
    Step("annotate server srv-RUN-b metal.ironcore.dev/operation-"),
    Step("annotate server srv-RUN-b metal.ironcore.dev/operation-"),
    Step("replace -f -", stdin=manifests.CONFIG, core=True),
    Step("replace -f -", stdin=manifests.CONFIG.replace("settings", "nosuch")),
    Step("replace --force -f -", stdin=manifests.IPXE),
    Step("wait --for=condition=Ready server/srv-RUN-a --timeout=20s", core=True),
    Step("wait --for=condition=Ready server/srv-RUN-b --timeout=1s"),
    Step(
        "wait --for=jsonpath='{.status.powerState}'=On server/srv-RUN-b --timeout=20s",
        meanwhile=(
            Step("""patch server srv-RUN-b --subresource=status --type=merge -p '{"status":{"powerState":"On"}}'"""),
        ),
    ),
    Step("wait --for=condition=Established crd/servers.metal.ironcore.dev --timeout=20s"),
)

DELETES = (
    Step("delete server srv-RUN-c --dry-run=server"),
    Step("delete server srv-RUN-c --dry-run=client"),
    Step("""patch server srv-RUN-c --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'"""),
    Step("delete server srv-RUN-c --wait=false"),
    Step("delete server srv-RUN-c --timeout=2s"),
    Step("get server srv-RUN-c -o yaml"),
    Step(
        "wait --for=delete server/srv-RUN-c --timeout=20s",
        meanwhile=(
            Step("""patch server srv-RUN-c --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"""),
        ),
    ),
    Step("delete server srv-RUN-c"),
    Step("delete server srv-RUN-c --ignore-not-found"),
    Step("delete scl worker-1 --cascade=foreground"),
    Step("delete cm settings --cascade=orphan"),
    Step("delete -f -", stdin=manifests.IPXE, core=True),
    Step("delete servers -l run=RUN,rack=r1"),
    Step("delete metal -l run=RUN", shuffled=True, core=True),
    Step("delete cm --all", only="made"),
    Step("delete namespace lab-RUN", core=True),
    Step("get ns lab-RUN", core=True),
)
