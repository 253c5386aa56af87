"""`metalctl manager` as a process against an API that listens, in real time."""

import asyncio
import json
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from metal.api.core import LEASE, Lease
from metal.apiserver.server import EmbeddedAPI
from metal.cli.main import main
from metal.cli.run.manager import sentence
from metal.kube.client.errors import Forbidden, NotFound, Unauthorized
from metal.kube.meta.clock import system_clock
from tests.cli.live import METALCTL, Live, api
from tests.cli.run.test_up import free_ports

pytestmark = pytest.mark.life


class Managed:
    """A running `metalctl manager` and its output."""

    def __init__(self, folder: Path, kubeconfig: Path, *options: str, election: str = "") -> None:
        folder.mkdir()
        boot, registry, self.metrics = free_ports(3)
        config = folder / "config.yaml"
        config.write_text(
            f'listen:\n  boot: "127.0.0.1:{boot}"\n  registry: "127.0.0.1:{registry}"\n'
            f'  metrics: "127.0.0.1:{self.metrics}"\n{election}'
        )
        self.command: list[str | Path] = [
            METALCTL, "manager", "--kubeconfig", kubeconfig, "--config", config, "--data", folder / "data", *options,
        ]  # fmt: skip
        self.log = folder / "log"
        self.process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Managed":
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(*self.command, stdout=log, stderr=log)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Return the exit code after SIGTERM, and the seconds until the end."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(how)
        code = await asyncio.wait_for(self.process.wait(), 15)
        return code, time.monotonic() - begun

    async def code(self) -> int:
        """Return the exit code of a manager that ends without a signal."""
        assert self.process is not None
        return await asyncio.wait_for(self.process.wait(), 20)

    def printed(self) -> str:
        return self.log.read_text()

    async def probe(self, path: str) -> tuple[int, str]:
        """Return status and text of a probe; 0 while the port is closed."""
        return await asyncio.to_thread(self._probe, path)

    def _probe(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()
        except OSError as exc:
            return 0, str(exc)

    async def wait_for(self, wanted: tuple[int, str], path: str = "/readyz") -> None:
        async with asyncio.timeout(20):
            while True:
                if await self.probe(path) == wanted:
                    return
                await asyncio.sleep(0.05)


async def _lease(live: Live) -> Lease:
    return await live.client.get(LEASE, "metal-operator", "metal-system")


QUICK = "election:\n  leaseDuration: 2\n  renewDeadline: 1.5\n  retryPeriod: 300ms\n  drain: 500ms\n"


async def test_of_two_managers_one_leads_and_the_other_takes_over_at_once(tmp_path: Path) -> None:
    """Both are ready as leader and standby; after SIGTERM the leader releases the Lease and exits with 0, and the
    standby leads."""
    async with api(tmp_path / "api") as live, Managed(tmp_path / "a", live.kubeconfig, election=QUICK) as first:
        await first.wait_for((200, "ok leader"))
        async with Managed(tmp_path / "b", live.kubeconfig, election=QUICK) as second:
            await second.wait_for((200, "ok standby"))
            held = await _lease(live)
            code, took = await first.end()
            begun = time.monotonic()
            await second.wait_for((200, "ok leader"))
            assert (code, time.monotonic() - begun < 3, took < 3) == (0, True, True)
            taken = await _lease(live)
            assert held.spec.holder_identity != taken.spec.holder_identity
            assert taken.spec.lease_transitions == held.spec.lease_transitions + 1
            assert (await second.probe("/healthz"))[0] == 200
            assert (await second.end())[0] == 0
        assert (await _lease(live)).spec.holder_identity == ""


async def test_without_election_it_leads_at_once_and_logs_json_where_asked(tmp_path: Path) -> None:
    """No Lease is created, the metrics report the leader, and each log line is a JSON object."""
    async with api(tmp_path / "api") as live:
        options = ("--no-leader-elect", "--log-format", "json")
        async with Managed(tmp_path / "a", live.kubeconfig, *options) as manager:
            await manager.wait_for((200, "ok leader"))
            status, metrics = await manager.probe("/metrics")
            assert (await manager.end(signal.SIGINT))[0] == 0
        assert status == 200
        assert 'leader_election_master_status{name="metal-operator"} 1.0' in metrics
        assert 'rest_client_requests_total{code="200",host="127.0.0.1:' in metrics
        assert "_created" not in metrics
        assert not (await live.client.list(LEASE, "metal-system")).items
        lines = [json.loads(line) for line in manager.printed().splitlines()]
        assert "manager is up" in [line["event"] for line in lines]


async def test_missing_kinds_end_it_with_the_way_out(tmp_path: Path) -> None:
    """Without the CRDs the manager exits with 1 and names what to apply."""
    server = EmbeddedAPI(tmp_path / "api", system_clock)
    await server.start()
    try:
        await server.listen(port=0)
        async with Managed(tmp_path / "a", server.kubeconfig) as manager:
            assert await manager.code() == 1
        assert "metal.ironcore.dev: " in manager.printed()
        assert "the CRDs are missing: kubectl apply -f config/crd" in manager.printed()
        assert "Traceback" not in manager.printed()
    finally:
        await server.stop()


async def test_the_manager_waits_for_the_api_server(tmp_path: Path) -> None:
    """The probe reports `starting` until the API server answers, then ready; SIGTERM ends the wait."""
    port = free_ports(1)[0]
    server = EmbeddedAPI(tmp_path / "api", system_clock)
    await server.start()
    await server.listen(port=port)
    await server.stop()
    async with Managed(tmp_path / "a", server.kubeconfig) as manager:
        await manager.wait_for((503, "starting"))
        assert (await manager.probe("/healthz"))[0] == 200
        code, took = await manager.end()
        assert (code, took < 3) == (0, True)
    assert "API server does not answer yet" in manager.printed()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Forbidden("servers is forbidden"), "servers is forbidden; grant the permissions of config/rbac"),
        (NotFound("servers.metal: no"), "servers.metal: no; the CRDs are missing"),
        (Unauthorized("who?"), "rejected the credentials"),
        (PermissionError(13, "Permission denied", "/data"), "/data: Permission denied; grant this user access"),
        (OSError(98, "address in use"), "address in use; change listen in the configuration"),
    ],
)
def test_every_failure_has_a_way_out(error: Exception, words: str) -> None:
    """Each error has a sentence with the way out."""
    assert words in sentence(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("election:\n  leaseDuration: 5\n", "leaseDuration must be longer than renewDeadline"),
        ("election:\n  leaseDuration: 10.5\n", "write whole seconds"),
        ("election:\n  lease: A\n", "write a DNS name"),
    ],
)
def test_election_times_that_allow_two_leaders_are_rejected(text: str, words: str, tmp_path: Path) -> None:
    """Invalid election times are a usage error with exit code 2."""
    config = tmp_path / "config.yaml"
    config.write_text(text)
    result = CliRunner().invoke(main, ["manager", "--config", str(config)])
    assert (result.exit_code, words in result.output) == (2, True)


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    """A missing kubeconfig is an error with exit code 2 and the file name."""
    result = CliRunner().invoke(main, ["manager", "--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert f"{tmp_path / 'none'}: No such file or directory" in result.output
