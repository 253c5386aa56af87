"""The manager's container image: what is in it, that it can be built again, and that the manager runs from it."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from images.manager import build, python

from tests.install.conftest import Site
from tests.install.container import Container, image_config, put, unpack
from tests.install.helm import TOP
from tests.kubeapi.cluster import free_ports

pytestmark = [pytest.mark.image, pytest.mark.timeout(900)]
IMPORTS = """
import importlib, pkgutil, sqlite3, ssl, lzma, bz2, ctypes, uuid, multiprocessing, zoneinfo
import asyncssh, cel, cryptography.x509, jsonschema_rs, rich, uvloop, aiohttp._http_parser, msgspec._core, yaml._yaml
import metal
found = [one.name for one in pkgutil.walk_packages(metal.__path__, "metal.") if not one.name.endswith("__main__")]
for name in found:
    importlib.import_module(name)
print(len(found), len(ssl.create_default_context().get_ca_certs()))
"""

BUTANE = """
import asyncio
from metal.boot.butane import Butane
print(asyncio.run(Butane().convert(b"variant: fcos\\nversion: 1.5.0\\n")).config)
"""


@pytest.fixture(scope="module")
def built() -> Path:
    """The image of this checkout, as `make image` leaves it in the cache."""
    build.CACHE.mkdir(parents=True, exist_ok=True)
    return build.build(build.make_plan(), build.CACHE)


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """The image's files, unpacked."""
    unpack(built / "image", tmp_path / "root")
    return tmp_path / "root"


def test_the_image_is_small_and_says_what_it_is(built: Path) -> None:
    """Less than 150 MB to pull; user, command, ports and labels are what the manifests count on."""
    _, manifest, size = build.manifest(built / "image")
    config = image_config(built / "image")["config"]
    labels = config["Labels"]

    assert size < 150 * 10**6
    assert manifest["schemaVersion"] == 2
    assert (config["User"], config["Entrypoint"], config["Cmd"]) == (
        "65532:65532",
        ["/usr/local/bin/metalctl"],
        ["manager"],
    )
    assert set(config["ExposedPorts"]) == {"8080/tcp", "8082/tcp", "10000/tcp"}
    assert labels["org.opencontainers.image.title"] == "metal-operator"
    assert re.fullmatch("[0-9a-f]{40}(-dirty)?", labels["org.opencontainers.image.revision"])
    assert not [name for name in labels if not name.startswith("org.opencontainers.image.")]


def reached(path: Path, root: Path) -> bool:
    """Whether a link leads to something that is in the image, or to what a pod brings."""
    target = os.readlink(path)
    beside = root / target.lstrip("/") if target.startswith("/") else path.parent / target
    return beside.exists() or beside.is_symlink()


def test_nothing_is_in_it_that_the_manager_does_not_need(root: Path) -> None:
    """No shell, no package manager, no setuid program, no documentation but licences, no caches."""
    names = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    programs = {name for name in names if name.startswith(("usr/bin/", "usr/sbin/", "usr/local/bin/"))}
    unwanted = ("usr/share/man/", "usr/share/locale/", "var/lib/", "var/cache/", "var/log/", "etc/machine-id")

    assert programs == {"usr/bin/python3.11", "usr/local/bin/butane", "usr/local/bin/metalctl"}
    assert not [name for name in names if name.startswith(unwanted) or "/pip/" in name or "/tests/" in name]
    assert not [path for path in root.rglob("*") if not path.is_symlink() and path.stat().st_mode & stat.S_ISUID]
    assert len({path.stat().st_mtime for path in root.rglob("*.py") if not path.is_symlink()}) == 1
    assert not [path for path in root.rglob("*") if path.is_symlink() and not reached(path, root)]


def test_the_bill_of_materials_names_everything(root: Path, built: Path) -> None:
    """The SPDX document beside the image is the one inside; it has every Python package that is there."""
    inside = (root / build.SBOM).read_text()
    document = json.loads(inside)
    named = {package["name"]: package for package in document["packages"]}
    site = root / python.SITE
    there = {path.read_text().partition("\nName: ")[2].split("\n")[0] for path in site.glob("*.dist-info/METADATA")}
    ids = [package["SPDXID"] for package in document["packages"]]

    assert inside == (built / "sbom.spdx.json").read_text()
    assert {"metal-operator", "aiohttp", "python3.11-minimal", "libc6", "libssl3"} <= set(named)
    assert there <= set(named)
    assert "pytest" not in named
    assert len(ids) == len(set(ids))
    assert len(document["relationships"]) == len(ids)


def test_everything_can_be_imported(root: Path, tmp_path: Path) -> None:
    """Each of our modules and each compiled part of the dependencies finds its libraries, as nobody's user."""
    (tmp_path / "account").mkdir()
    ran = Container(root, tmp_path / "account", {}, "/usr/bin/python3.11", "-c", IMPORTS)

    assert ran.wait(120) == 0, ran.log.read_text()
    modules, authorities = map(int, ran.log.read_text().split())
    assert modules > 100
    assert authorities > 100


def test_butane_converts(root: Path, tmp_path: Path) -> None:
    """As the manager runs it: without an environment, its CPU time, memory and output limited."""
    (tmp_path / "account").mkdir()
    ran = Container(root, tmp_path / "account", {}, "/usr/bin/python3.11", "-c", BUTANE)

    assert ran.wait(60) == 0, ran.log.read_text()
    assert '{"ignition":{"version":"3.4.0"}}' in ran.log.read_text()


def test_the_root_cannot_be_written(root: Path, tmp_path: Path) -> None:
    """The other tests prove something: in the container only /data and /tmp take files."""
    (tmp_path / "account").mkdir()
    tried = "open('/data/a', 'w'); open('/tmp/a', 'w'); open('/etc/a', 'w')"
    ran = Container(root, tmp_path / "account", {}, "/usr/bin/python3.11", "-c", tried)

    assert ran.wait(60) == 1
    assert "Read-only file system: '/etc/a'" in ran.log.read_text()


@pytest.fixture
def installed(site: Site, tmp_path: Path) -> Iterator[Path]:
    """The cluster with config/default, and the folder of the manager's service account."""
    site.kubectl("apply", "-k", TOP / "config/default")
    site.kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text(site.kubectl("create", "token", "metal-operator", "-n", "metal-system"))
    (account / "ca.crt").write_text(site.cluster.authority.read_text())
    (account / "namespace").write_text("metal-system")
    yield account
    site.kubectl("delete", "-k", TOP / "config/default", "--timeout=60s")


def test_the_manager_runs_from_the_image(site: Site, built: Path, root: Path, installed: Path) -> None:
    """With the arguments, account and rights of config/default it gets ready, leads, and on SIGTERM gives its Lease
    back and ends with 0."""
    boot, registry, metrics = free_ports(3)
    listen = {"boot": f"127.0.0.1:{boot}", "registry": f"127.0.0.1:{registry}", "metrics": f"127.0.0.1:{metrics}"}
    put(root, "etc/metal/config/metal.yaml", yaml.safe_dump({"listen": listen}))
    pod = yaml.safe_load((TOP / "config/manager/deployment.yaml").read_text())["spec"]["template"]["spec"]
    config = image_config(built / "image")["config"]
    environment = dict(one.split("=", 1) for one in config["Env"] if not one.startswith("PATH="))
    environment |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(site.cluster.port)}

    manager = Container(root, installed, environment, *config["Entrypoint"], *pod["containers"][0]["args"])
    try:
        manager.answered(f"http://127.0.0.1:{metrics}/healthz", "ok")
        manager.answered(f"http://127.0.0.1:{metrics}/readyz", "ok leader")
        manager.answered(f"http://127.0.0.1:{boot}/nothing", "404")
        manager.terminate()
        code = manager.wait(pod["terminationGracePeriodSeconds"])
    finally:
        manager.end()

    holder = site.kubectl(
        "get", "lease", "metal-operator", "-n", "metal-system", "-o", "jsonpath={.spec.holderIdentity}"
    )
    assert code == 0, manager.log.read_text()
    assert not holder
    assert "Traceback" not in manager.log.read_text()


def clone(revision: str, folder: Path) -> str:
    """What a fresh clone's build prints of its digest."""
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(TOP), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", "--detach", revision], check=True)
    (folder / ".tools").symlink_to(TOP / ".tools")
    environment = {**os.environ, "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(TOP / ".cache/uv"))}
    command = [sys.executable, "images/manager/build.py", "--out", "out"]
    told = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
    return next(word for word in told.split() if word.startswith("sha256:")).rstrip(",")


def test_two_clones_build_the_same_image(tmp_path: Path) -> None:
    """Two clones of one commit, at different times and places and without a cache, give one digest."""
    head = ["git", "-C", str(TOP), "rev-parse", "HEAD"]
    revision = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    first = clone(revision, tmp_path / "first")
    before = os.umask(0o027)
    try:
        second = clone(revision, tmp_path / "a" / "second")
    finally:
        os.umask(before)

    assert first == second
