"""The chart on a real kube-apiserver: linted, rendered, installed, upgraded, rolled back, uninstalled."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal.api.kinds import METAL_GROUP, kinds
from metal.codegen import rbac
from metal.codegen.crd import crds
from metal.controllers.bmc import dns_template
from tests.install.conftest import Site
from tests.install.helm import CHART, SMALLEST, VALUE_SETS, Helm, of_kind, only

pytestmark = pytest.mark.kube
SETTINGS = ("--namespace", "hardware", "--create-namespace", "--values", SMALLEST)
SERVER = """
apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata: {name: kept}
spec: {systemUUID: "38947555-7742-3448-3784-823347823834"}
"""


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """A helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


def test_lint_finds_nothing(helm: Helm) -> None:
    """`helm lint --strict` passes with each value set, and with no values but the defaults."""
    helm.run("lint", "--strict", CHART)
    for values in VALUE_SETS:
        helm.run("lint", "--strict", CHART, "--values", values)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("config.advertise.boot=", "config.advertise.boot is not set: machines must be told"),
        ("config.advertise.registry=", "config.advertise.registry is not set: machines must be told"),
        ("image.repository=", "image.repository is not set: build the image with `make image`"),
        ("serviceAccount.create=false", "name the existing account in serviceAccount.name"),
        ("replicas=two", "got string, want integer"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("config.probImage=x", "additional properties 'probImage' not allowed"),
        ("exposure.type=Ingress", "value must be one of 'LoadBalancer', 'NodePort', 'HostPort', 'HostNetwork'"),
    ],
)
def test_wrong_values_are_refused_with_a_sentence(helm: Helm, wrong: str, sentence: str) -> None:
    """helm stops before anything is installed, and names the value."""
    complaint = helm.run(
        "template", "m", CHART, "--kube-version", "v1.35.4", "--values", SMALLEST, "--set", wrong, fails=True
    )

    assert sentence in complaint


def rules_of(objects: list[Any], kind: str, name: str) -> Any:
    """The rules of a role."""
    (found,) = [one for one in of_kind(objects, kind) if one["metadata"]["name"] == name]
    return found["rules"]


def test_the_rights_are_the_generated_ones(helm: Helm) -> None:
    """Roles in the chart are those that follow from the code, for another namespace and API group too."""
    values = CHART / "ci/nodeport-values.yaml"
    objects = helm.template("--values", values, namespace="hardware")
    wanted = rbac.roles("metal.openkcm.dev", "boot.openkcm.dev", "hardware")

    assert rules_of(objects, "ClusterRole", "metal-operator") == plain(wanted.everywhere)
    assert rules_of(objects, "ClusterRole", "metal-operator-tenant-secrets") == plain(wanted.tenants)
    assert rules_of(objects, "Role", "metal-operator") == plain(wanted.home)


def plain(rules: Any) -> Any:
    """Rules as YAML reads them back."""
    return yaml.safe_load(yaml.safe_dump(rules))


@pytest.mark.parametrize("group", [METAL_GROUP, "metal.openkcm.dev"])
def test_the_crds_are_the_generated_ones(helm: Helm, group: str) -> None:
    """The chart's CRDs differ from config/crd by labels and annotations alone; they follow the API group."""
    objects = helm.template("--values", SMALLEST, "--set", f"config.apiGroup={group}")
    found = {one["metadata"]["name"]: one for one in of_kind(objects, "CustomResourceDefinition")}
    wanted = {one["metadata"]["name"]: one for one in crds(kinds(group))}

    assert {name: one["spec"] for name, one in found.items()} == {name: one["spec"] for name, one in wanted.items()}
    assert all(one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for one in found.values())


def test_crds_can_be_left_to_somebody_else(helm: Helm) -> None:
    """crds.enabled=false brings none; crds.keep=false lets them go with the release."""
    without = helm.template("--values", SMALLEST, "--set", "crds.enabled=false")
    going = helm.template("--values", SMALLEST, "--set", "crds.keep=false")

    assert not of_kind(without, "CustomResourceDefinition")
    assert all("annotations" not in one["metadata"] for one in of_kind(going, "CustomResourceDefinition"))


def checksums(objects: list[Any]) -> dict[str, str]:
    """What makes pods restart."""
    annotations = only(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    return {name: value for name, value in annotations.items() if name.startswith("checksum/")}


def test_a_changed_configuration_restarts_the_managers(helm: Helm) -> None:
    """Pods carry a checksum of the configuration."""
    before = checksums(helm.template("--values", SMALLEST))
    configured = checksums(helm.template("--values", SMALLEST, "--set", "config.probeImage=registry.example.com/os:1"))
    again = checksums(helm.template("--values", SMALLEST))

    assert before == again
    assert configured["checksum/config"] != before["checksum/config"]


def test_the_event_receiver_is_reached_only_where_it_is_advertised(helm: Helm) -> None:
    """Its port is in configuration, pod, Service and network policy, where BMCs come in, or in none of them."""
    without = yaml.safe_dump(helm.template("--values", SMALLEST))
    objects = helm.template("--values", CHART / "ci/everything-values.yaml")
    ingress = only(objects, "NetworkPolicy")["spec"]["ingress"]
    (rule,) = [one for one in ingress if one["ports"] == [{"protocol": "TCP", "port": "events"}]]
    container = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]

    assert "10001" not in without
    assert rule["from"] == [{"ipBlock": {"cidr": "198.51.100.0/24"}}]
    assert {"name": "events", "containerPort": 10001, "protocol": "TCP"} in container["ports"]
    assert any(port["name"] == "events" for one in of_kind(objects, "Service") for port in one["spec"]["ports"])
    assert "events: '[::]:10001'" in yaml.safe_dump(objects) or 'events: "[::]:10001"' in yaml.safe_dump(objects)


def test_factory_credentials_are_in_a_secret(helm: Helm) -> None:
    """MAC prefixes with their passwords reach the manager through a Secret, unrendered, and nothing else."""
    objects = helm.template("--values", CHART / "ci/everything-values.yaml")

    assert "not a template" not in yaml.safe_dump([one for one in objects if one["kind"] != "Secret"])
    assert "mac-prefixes.yaml" in only(objects, "Secret")["data"]


def test_the_template_of_dns_records_reaches_the_manager_unrendered(helm: Helm, tmp_path: Path) -> None:
    """As a file beside the configuration, which names it; its kind's rights are in the role of the namespace only."""
    values = CHART / "ci/everything-values.yaml"
    objects, without = helm.template("--values", values), helm.template("--values", SMALLEST)
    files = only(objects, "ConfigMap")["data"]
    template = tmp_path / "dns-record-template.yaml"
    template.write_text(files[template.name])
    role = rules_of(objects, "Role", "metal")

    assert yaml.safe_load(files["metal.yaml"])["dnsRecordTemplate"] == f"/etc/metal/config/{template.name}"
    assert dns_template.load(template).kind == "DNSEndpoint"
    assert files[template.name].strip() == yaml.safe_load(values.read_text())["dnsRecordTemplate"].strip()
    assert role[:-1] == plain(rbac.roles(namespace="metal-system").home)
    assert role[-1]["resources"] == ["dnsendpoints"]
    other = helm.template("--values", values, "--set", "dnsRecordTemplate=kind: Other")
    assert pod_annotations(other) != pod_annotations(objects), "a changed template does not reach running managers"
    assert "dns" not in yaml.safe_dump([only(without, "ConfigMap"), *of_kind(without, "Role")])


def test_files_of_registries_reach_the_manager_beside_the_configuration(helm: Helm) -> None:
    """As they are; a changed file makes new pods."""
    values = CHART / "ci/everything-values.yaml"
    objects = helm.template("--values", values)
    files = only(objects, "ConfigMap")["data"]
    (server,) = yaml.safe_load(files["metal.yaml"])["registries"]["servers"]

    assert server["caFile"] == "/etc/metal/config/registry-ca.pem"
    assert files["registry-ca.pem"] == yaml.safe_load(values.read_text())["configFiles"]["registry-ca.pem"]
    other = helm.template("--values", values, "--set", "configFiles.registry-ca\\.pem=other")
    assert pod_annotations(other) != pod_annotations(objects), "a changed file does not reach running managers"


def pod_annotations(objects: list[Any]) -> Any:
    """Those of the managers' pods: a change makes new ones."""
    return only(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"]


def test_monitoring_is_made_on_demand(helm: Helm) -> None:
    """ServiceMonitor and alerts need foreign CRDs, and so are off until asked for; the alerts are config's own."""
    monitored = helm.template(
        "--values", SMALLEST, "--set", "serviceMonitor.enabled=true", "--set", "prometheusRule.enabled=true",
        "--set", "prometheusRule.labels.release=mine",
    )  # fmt: skip
    rule = only(monitored, "PrometheusRule")
    source = yaml.safe_load((CHART.parents[1] / "config/prometheus/alerts.yaml").read_text())

    assert not of_kind(helm.template("--values", SMALLEST), "ServiceMonitor")
    assert only(monitored, "ServiceMonitor")["spec"]["endpoints"] == [{"port": "metrics", "interval": "30s"}]
    assert rule["spec"] == source["spec"]
    assert rule["metadata"]["labels"]["release"] == "mine"


def test_one_replica_can_be_evicted(helm: Helm) -> None:
    """A disruption budget for a single manager would stop every drain of its node, so there is none."""
    assert not of_kind(helm.template("--values", SMALLEST, "--set", "replicas=1"), "PodDisruptionBudget")
    assert of_kind(helm.template("--values", SMALLEST), "PodDisruptionBudget")


@pytest.mark.parametrize("values", VALUE_SETS, ids=lambda path: path.name.partition("-")[0])
def test_the_api_accepts_every_object(site: Site, values: Path) -> None:
    """What helm renders from each value set passes kube-apiserver's validation, unknown fields refused."""
    objects = site.helm.template("--values", values, namespace="default")
    text = yaml.safe_dump_all(one for one in objects if one["metadata"].get("namespace") in (None, "default"))

    told = site.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)

    assert told.count("(server dry run)") == text.count("\n---\n") + 1


def previous_chart(folder: Path) -> Path:
    """A chart as it might have been before: a CRD lacks a field, and an object is there that went away since."""
    chart = folder / "metal-operator"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text()) | {"version": "0.0.9", "appVersion": "0.0.9"}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    crd = chart / "templates/crds/bmcsecrets.yaml"
    crd.write_text(crd.read_text().replace("    - metal\n", "    - oldmetal\n", 1))
    (chart / "templates/old.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: went-away, namespace: {{ .Release.Namespace }}}\n"
    )
    return chart


def categories(site: Site) -> str:
    """What the upgrade changes in a CRD."""
    crd = "customresourcedefinition/bmcsecrets.metal.ironcore.dev"
    return site.kubectl("get", crd, "-o", "jsonpath={.spec.names.categories[*]}")


def config_maps(site: Site) -> str:
    """Names of the ConfigMaps of the release."""
    return site.kubectl("get", "configmaps", "-n", "hardware", "-o", "name")


@pytest.mark.timeout(120)
def test_a_release_lives_and_leaves_the_servers_alone(site: Site, tmp_path: Path) -> None:
    """Installed, upgraded from the chart before, rolled back, upgraded again and uninstalled: CRDs follow each step,
    Servers outlive them all, and a second installation takes over what stayed."""
    helm, old = site.helm, previous_chart(tmp_path)

    notes = helm.run("install", "metal-operator", old, *SETTINGS)
    assert "config.probeImage is not set: servers wait in Discovery" in notes
    assert categories(site) == "oldmetal"
    assert "went-away" in config_maps(site)
    site.kubectl("wait", "--for=condition=Established", "customresourcedefinition/servers.metal.ironcore.dev")
    site.kubectl("apply", "-f", "-", stdin=SERVER)
    uid = site.kubectl("get", "server", "kept", "-o", "jsonpath={.metadata.uid}")

    helm.run("upgrade", "metal-operator", CHART, *SETTINGS)
    assert categories(site) == "metal"
    assert "went-away" not in config_maps(site)

    helm.run("rollback", "metal-operator", "1", "--namespace", "hardware")
    assert categories(site) == "oldmetal"

    helm.run("upgrade", "metal-operator", CHART, *SETTINGS)
    helm.run("uninstall", "metal-operator", "--namespace", "hardware")
    assert not site.kubectl("get", "deployments,services,roles", "-n", "hardware", "-o", "name")
    assert site.kubectl("get", "server", "kept", "-o", "jsonpath={.metadata.uid}") == uid

    helm.run("install", "metal-operator", CHART, *SETTINGS)
    assert site.kubectl("get", "server", "kept", "-o", "jsonpath={.metadata.uid}") == uid
    helm.run("uninstall", "metal-operator", "--namespace", "hardware")
    site.kubectl("delete", "-k", CHART.parents[1] / "config/crd")
