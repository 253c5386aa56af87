"""config/ for kustomize: rendered by every kubectl, applied to a real kube-apiserver, equal to the chart."""

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver import kubectl
from tests.install.conftest import Site
from tests.install.helm import SMALLEST, TOP, of_kind, only

CONFIG = TOP / "config"


@functools.cache
def rendered(folder: str, program: str = "") -> list[Any]:
    """The objects of one of config's folders."""
    command = [program or kubectl.program(), "kustomize", str(CONFIG / folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def oldest() -> str:
    """The oldest kubectl beside the one in use, or that one."""
    beside = Path(os.path.realpath(shutil.which(kubectl.program()) or kubectl.program())).parent
    found = sorted(beside.glob("kubectl.1.*"))
    return str(found[0]) if found else kubectl.program()


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("folder", ["default", "site", "prometheus", "crd", "rbac"])
def test_old_and_new_kubectl_render_the_same(folder: str) -> None:
    """The kustomize of the oldest kubectl at hand gives the objects that the present one gives."""
    objects = rendered(folder)

    assert objects
    assert rendered(folder, oldest()) == objects


@pytest.mark.needs("kubectl")
def test_a_site_gives_its_own_files_to_the_manager() -> None:
    """The overlay's configuration and MAC prefixes are what the pods mount, under names that change with them."""
    objects = rendered("site")
    pod = only(objects, "Deployment")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    config, prefixes = only(objects, "ConfigMap"), only(objects, "Secret")

    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"] != "metal-operator-config"
    assert volumes["prefixes"]["secret"]["secretName"] == prefixes["metadata"]["name"]
    assert yaml.safe_load(config["data"]["metal.yaml"])["advertise"]["boot"] == "http://192.0.2.1:8082"
    assert pod["containers"][0]["image"] == "registry.example.com/metal-operator:0.1.0"


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("folder", ["default", "site"])
def test_kustomize_leaves_the_rights_alone(folder: str) -> None:
    """Roles come out as they were generated: names in their rules are those of Leases, which kustomize must not take
    for the ConfigMap that it renames."""
    roles = [one for one in yaml.safe_load_all((CONFIG / "rbac/role.yaml").read_text()) if one]
    objects = rendered(folder)

    for role in roles:
        (found,) = [
            one for one in of_kind(objects, role["kind"]) if one["metadata"]["name"] == role["metadata"]["name"]
        ]
        assert found["rules"] == role["rules"]


@pytest.mark.needs("kubectl")
def test_the_events_component_opens_the_receivers_port(tmp_path: Path) -> None:
    """In pod, Service and network policy; without it the port is shut everywhere, as no such thing listens."""
    parts = {"resources": "site", "components": "events"}
    overlay = {key: [os.path.relpath(CONFIG / folder, tmp_path)] for key, folder in parts.items()}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    plain, opened = rendered("site"), rendered(str(tmp_path))

    def ports(objects: list[Any]) -> list[Any]:
        (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
        services = [port for one in of_kind(objects, "Service") for port in one["spec"]["ports"]]
        doors = [door for rule in only(objects, "NetworkPolicy")["spec"]["ingress"] for door in rule["ports"]]
        return [*container["ports"], *services, *doors]

    assert [port for port in ports(opened) if port not in ports(plain)] == [
        {"name": "events", "containerPort": 10001, "protocol": "TCP"},
        {"name": "events", "port": 10001, "targetPort": "events", "protocol": "TCP"},
        {"protocol": "TCP", "port": "events"},
    ]
    assert len(ports(opened)) == len(ports(plain)) + 3


@pytest.mark.kube
@pytest.mark.parametrize("path", [(), ("template", "spec"), ("template", "spec", "containers", 0)])
def test_chart_and_kustomize_run_the_same_pods(site: Site, path: tuple[Any, ...]) -> None:
    """Both ways of installing give managers the same rights, probes, limits and ports."""
    ours, charted = (
        only(objects, "Deployment")["spec"]
        for objects in (rendered("default"), site.helm.template("--values", SMALLEST))
    )
    for step in path:
        ours, charted = ours[step], charted[step]
    named = {"containers", "volumes", "topologySpreadConstraints", "image", "selector", "template"}

    assert {key: ours[key] for key in ours if key not in named} == {
        key: charted[key] for key in charted if key not in named
    }


@pytest.mark.kube
def test_chart_and_kustomize_open_the_same_doors(site: Site) -> None:
    """Services, network policy and disruption budget are the same but for labels."""
    found = [rendered("default"), site.helm.template("--values", SMALLEST)]
    for kind in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        ours, charted = (
            {one["metadata"]["name"]: open_part(one) for one in of_kind(objects, kind)} for objects in found
        )
        assert ours == charted


def open_part(one: Any) -> Any:
    """A spec without the labels by which it selects."""
    return {key: value for key, value in one["spec"].items() if key not in ("selector", "podSelector")}


def versions(site: Site) -> dict[str, str]:
    """What changes when an object does: its generation, which a new status leaves alone, or else its version.

    kubectl itself says `configured` of Secrets and disruption budgets whenever it is asked.
    """
    found = yaml.safe_load(site.kubectl("get", "-k", CONFIG / "site", "-o", "yaml"))["items"]
    metas = {f"{one['kind']}/{one['metadata']['name']}": one["metadata"] for one in found}
    return {name: str(meta.get("generation") or meta["resourceVersion"]) for name, meta in metas.items()}


@pytest.mark.kube
@pytest.mark.parametrize("way", ["newest", "oldest"])
def test_two_lines_install_everything(site: Site, way: str) -> None:
    """`kubectl apply -k` is accepted, a second time changes nothing, and `delete -k` leaves nothing behind."""
    program = oldest() if way == "oldest" else ""

    first = site.kubectl("apply", "-k", CONFIG / "site", program=program).splitlines()
    before = versions(site)
    site.kubectl("apply", "-k", CONFIG / "site", program=program)
    after = versions(site)
    account = "system:serviceaccount:metal-system:metal-operator"
    may = site.kubectl("auth", "can-i", "list", "servers.metal.ironcore.dev", f"--as={account}")
    site.kubectl("delete", "-k", CONFIG / "site", "--timeout=60s", program=program)

    assert len(first) == len(rendered("site"))
    assert all(line.endswith(" created") for line in first)
    assert before == after
    assert may.strip() == "yes"


@pytest.mark.kube
def test_single_folders_are_applied_by_file_too(site: Site) -> None:
    """`kubectl apply -f config/crd -f config/rbac`, as the manager's own help says, meets no kustomization file."""
    told = site.kubectl("apply", "--dry-run=server", "-f", CONFIG / "crd")

    assert told.count("customresourcedefinition") == len(list((CONFIG / "crd").glob("*.yaml")))


@pytest.mark.kube
def test_pods_are_admitted_where_pod_security_is_restricted(site: Site) -> None:
    """A namespace that enforces the strictest Pod Security Standard takes the pods of both ways."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": label}}
    site.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(namespace))

    for objects in (rendered("default"), rendered("site"), site.helm.template("--values", SMALLEST)):
        spec = only(objects, "Deployment")["spec"]["template"]["spec"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "manager", "namespace": "restricted"},
            "spec": spec,
        }
        told = site.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(pod))
        assert "pod/manager created" in told
