"""What honest clients notice of an attack: `python bench/attack.py [NAME ...] [-s 10] [-o json]`.

Starts `metalctl up` on loopback. Two honest clients, with addresses of their own, ask it without pause: a machine that
asks the boot server for the chainload script on a new connection (for the beginning of its image, during
`image-streams`), and an API client that lists namespaces on a
connection that it keeps. They do so for some seconds in peace, and again during each attack (`bench/attacks.py`, a
process and an address of its own). Prints milliseconds (p50, p99, worst), failed requests and the peak memory of the
control plane. --source DIR runs the program of another checkout, to compare.
"""

import argparse
import asyncio
import json
import os
import signal
import ssl
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import boots
from bench.attacks import ATTACKS, Targets

from metal.api.core import CRD
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import from_file

METALCTL = Path(sys.executable).with_name("metalctl")
API, BOOT, REGISTRY, METRICS = range(18120, 18124)
MACHINE, CLIENT = "127.0.0.77", "127.0.0.78"
BEGINNING = {"Range": "bytes=0-65535"}
PATIENCE = 10.0
"""Seconds after which an honest client counts a failure."""
TEXTS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "texts.bench.example.org"},
    "spec": {
        "group": "bench.example.org", "scope": "Namespaced", "names": {"plural": "texts", "kind": "Text"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"text": {"type": "string"}},
                                    "x-kubernetes-validations": [{"rule": "self.text.find('(a+)+$') != ''"}]}},
        }}}],
    },
}  # fmt: skip
ROLE = {"rules": [{"apiGroups": ["*"], "resources": ["serverclaims", "texts"], "verbs": ["create"]}]}
Figures = dict[str, float]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("attacks", nargs="*", metavar="NAME", help=f"of {', '.join(ATTACKS)} (all)")
    parser.add_argument("-s", "--seconds", type=float, default=10.0, help="seconds of each measurement (10)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--source", type=Path, help="checkout whose src is run instead of this one")
    return parser.parse_args()


class Home:
    """A running `metalctl up`."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self._folder, self._process = folder, process

    @classmethod
    async def start(cls, folder: Path, source: Path | None) -> "Home":
        boots.keep_image(folder / "data")
        config = folder / "config.yaml"
        config.write_text(
            f'listen:\n  api: "127.0.0.1:{API}"\n  boot: "127.0.0.1:{BOOT}"\n'
            f'  registry: "127.0.0.1:{REGISTRY}"\n  metrics: "127.0.0.1:{METRICS}"\n'
        )
        environment = {**os.environ, **({"PYTHONPATH": str(source / "src")} if source else {})}
        with (folder / "up.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                str(METALCTL), "up", "--data", str(folder / "data"), "--config", str(config),
                stdout=log, stderr=log, env=environment,
            )  # fmt: skip
        home = cls(folder, process)
        async with asyncio.timeout(60), aiohttp.ClientSession() as http:
            while True:
                with suppress(aiohttp.ClientError):
                    async with http.get(f"http://127.0.0.1:{METRICS}/readyz") as answer:
                        if answer.status == 200:
                            return home
                await asyncio.sleep(0.1)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._folder / "data" / "kubeconfig"

    def forget_peak(self) -> None:
        """Measure the peak of memory from now on."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    @property
    def peak_mib(self) -> float:
        """Most memory since `forget_peak`."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))

    async def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 20)
        except TimeoutError:
            self._process.kill()


async def prepare(kubeconfig: Path) -> tuple[Targets, str, str]:
    """Accounts for the attacker, the CRD with a rule, two boots; the administrator's token, the honest image's path."""
    connection = from_file(kubeconfig)
    assert connection.token is not None
    client = HTTPClient(connection)
    try:
        await client.apply(CRD, TEXTS, manager="bench")
        images = await boots.open_windows(client)
    finally:
        await client.aclose()
    admin = connection.token()
    async with api_session(admin, CLIENT) as http:
        binding = {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": "default"}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        await _created(http, f"{rbac}/roles", {"metadata": {"name": "tenant"}, **ROLE})
        await _created(http, f"{rbac}/rolebindings", {"metadata": {"name": "tenant"}, **binding})
        tokens = {}
        for name in ("tenant", "stranger"):
            accounts = "/api/v1/namespaces/default/serviceaccounts"
            await _created(http, accounts, {"metadata": {"name": name}})
            made = await _created(http, f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 7200}})
            tokens[name] = made["status"]["token"]
    return Targets(API, BOOT, REGISTRY, **tokens, image=images["attacker"]), admin, images["honest"]


async def _created(http: aiohttp.ClientSession, path: str, body: Any) -> Any:
    async with http.post(path, json=body) as answer:
        made = await answer.json()
        assert answer.status == 201, made
        return made


def api_session(token: str, source: str) -> aiohttp.ClientSession:
    """A client of the API on one connection that it keeps."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=tls, local_addr=(source, 0), limit=1)
    headers = {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(f"https://127.0.0.1:{API}", connector=connector, headers=headers)


async def honest(http: aiohttp.ClientSession, path: str, until: float) -> Figures:
    """Ask until then; one request after the other, a hundred a second at most."""
    times, failed = [], 0
    while time.monotonic() < until:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE), http.get(path, headers=BEGINNING) as answer:
                await answer.read()
                failed += answer.status not in {200, 206}
        except (aiohttp.ClientError, OSError):
            failed += 1
        times.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.01)
    percents = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else times * 99
    return {"n": len(times), "failed": failed, "p50": percents[49], "p99": percents[98], "worst": max(times)}


async def measured(home: Home, admin: str, path: str, seconds: float) -> dict[str, Any]:
    """The two honest clients for some seconds, and the peak of memory meanwhile."""
    until = time.monotonic() + seconds
    connector = aiohttp.TCPConnector(local_addr=(MACHINE, 0), force_close=True)
    async with (
        aiohttp.ClientSession(f"http://127.0.0.1:{BOOT}", connector=connector) as machine,
        api_session(admin, CLIENT) as client,
    ):
        figures = await asyncio.gather(honest(machine, path, until), honest(client, "/api/v1/namespaces", until))
    return {"machine": figures[0], "api": figures[1], "peak_mib": home.peak_mib}


async def attacked(name: str, home: Home, targets: Targets, admin: str, path: str, seconds: float) -> dict[str, Any]:
    """The same during an attack."""
    home.forget_peak()
    attacker = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name("attacks.py")), name, targets.text(),
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return await measured(home, admin, path, seconds)
    finally:
        if attacker.returncode is not None:
            raise SystemExit(f"the attacker {name} ended")
        attacker.kill()
        await attacker.wait()


async def run(args: argparse.Namespace) -> dict[str, Any]:
    """Figures by attack; `none` and `none-image` are peace."""
    found: dict[str, Any] = {}
    for name in args.attacks or ATTACKS:
        with tempfile.TemporaryDirectory(prefix="bench-attack-") as folder:
            home = await Home.start(Path(folder), args.source)
            try:
                targets, admin, image = await prepare(home.kubeconfig)
                peace, path = ("none-image", image) if name == "image-streams" else ("none", "/ipxe")
                if peace not in found:
                    home.forget_peak()
                    found[peace] = await measured(home, admin, path, args.seconds)
                found[name] = await attacked(name, home, targets, admin, path, args.seconds)
            finally:
                await home.stop()
    return found


def table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'':20}{'machine (ms)':>32}{'API client (ms)':>34}{'peak':>10}"]
    heads = "".join(f"{head:>8}" for head in ("p50", "p99", "worst", "failed"))
    lines.append(f"{'attack':20}{heads}  {heads}{'MiB':>10}")
    for name, figures in found.items():
        cells = ["".join(f"{figures[who][key]:8.1f}" for key in ("p50", "p99", "worst")) + f"{figures[who]['failed']:8}"
                 for who in ("machine", "api")]  # fmt: skip
        lines.append(f"{name:20}{cells[0]}  {cells[1]}{figures['peak_mib']:10.0f}")
    return "\n".join(lines)


if __name__ == "__main__":
    given = arguments()
    result = asyncio.run(run(given))
    print(json.dumps(result, indent=2) if given.output == "json" else table(result))
