"""metalctl dhcp-config"""

import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from metal.api.core import LEASE, NAMESPACE
from metal.apiserver.server import EmbeddedAPI
from metal.cli.main import main
from metal.cli.run import dhcp_config
from metal.config import Config, parse, shared_options

NET = ("--subnet", "192.0.2.0/24")
URL = ("--boot-url", "http://192.0.2.1:8082")


def run(*args: str) -> tuple[int, str]:
    """Return exit code and output; a message is one line."""
    result = CliRunner().invoke(main, ["dhcp-config", *args])
    return result.exit_code, result.output if result.exit_code == 0 else " ".join(
        result.output.replace("│", "").split()
    )


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An API whose Lease has these annotations."""
    annotations: dict[str, Any] = {}

    class _Live:
        async def get(self, kind: Any, name: str, namespace: str) -> Any:
            api = EmbeddedAPI(None, lambda: datetime(2026, 1, 1, tzinfo=UTC), rng=random.Random(0))
            await api.start()
            client = api.client()
            try:
                await client.create(NAMESPACE, {"metadata": {"name": "metal-system"}})
                meta = {"name": "metal-operator", "namespace": "metal-system", "annotations": annotations}
                await client.create(LEASE, {"metadata": meta, "spec": {}})
                return await client.get(kind, name, namespace)
            finally:
                await api.stop()

        async def aclose(self) -> None:
            """Nothing is kept."""

    monkeypatch.setattr(dhcp_config, "connect", lambda *_: _Live())
    return annotations


def test_the_url_comes_from_the_configuration_file_or_an_option(tmp_path: Path) -> None:
    """The option takes precedence."""
    file = tmp_path / "metal.yaml"
    file.write_text("advertise:\n  boot: http://192.0.2.7:8082\n")
    config = ("--config", str(file))
    assert "http://192.0.2.7:8082/ipxe" in run("dnsmasq", *NET, *config)[1]
    assert "http://192.0.2.1:8082/ipxe" in run("dnsmasq", *NET, *config, *URL)[1]


def test_a_running_manager_says_where_it_boots_from(live: dict[str, Any]) -> None:
    """Its Lease has the URL and the networks of BMCs as annotations, as the leader writes them."""
    config = parse("advertise: {boot: 'http://192.0.2.9:8082'}\nenrolment: {networks: [198.51.100.0/24]}", "test")
    live.update(shared_options.annotations(config))
    code, text = run("dnsmasq", *NET, "--from", "live")
    assert code == 0
    assert "dhcp-boot=tag:ipxe,http://192.0.2.9:8082/ipxe" in text
    assert "# BMCs are enrolled in 198.51.100.0/24" in text


def test_a_manager_that_listens_for_itself_only_is_no_place_to_boot_from(live: dict[str, Any]) -> None:
    """The default of listen.boot is a loopback address."""
    live.update(shared_options.annotations(Config()))
    code, text = run("dnsmasq", *NET, "--from", "live")
    assert (code, "set advertise.boot in the configuration file" in text) == (2, True)


def test_an_annotation_cannot_add_a_line(live: dict[str, Any]) -> None:
    """Whoever may write the Lease decides about the URL, and about no other option of dnsmasq."""
    live.update(shared_options.annotations(Config()))
    live["metal.ironcore.dev/boot-url"] = "http://192.0.2.1:8082\ndhcp-script=/tmp/x"
    assert run("dnsmasq", *NET, "--from", "live")[0] == 2
    live["metal.ironcore.dev/boot-url"] = "http://192.0.2.1:8082"
    live["metal.ironcore.dev/bmc-networks"] = "x\ndhcp-script=/tmp/x"
    assert run("dnsmasq", *NET, "--from", "live")[0] == 2


def test_without_a_manager_of_this_version_the_message_says_what_to_do(live: dict[str, Any]) -> None:
    """A former version writes no URL."""
    live["metal.ironcore.dev/options"] = "x=y"
    code, text = run("kea", *NET, "--from", "live")
    assert code == 1
    assert "no manager has written its boot URL to the Lease metal-system/metal-operator" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dnsmasq", *NET), "add --from live, --config FILE or --boot-url URL"),
        (("dnsmasq", *URL), "no network is given: add --subnet"),
        (("isc", *URL), "'isc' is not one of"),
        (("dnsmasq", *NET, "--boot-url", "x"), "--boot-url is 'x': write the URL"),
        (("dnsmasq", *NET, *URL, "--lease-time", "30s"), "dnsmasq needs at least 120s"),
        (("dnsmasq", *NET, *URL, "--metalctl", "x y"), "--metalctl is 'x y': write an absolute path"),
        (("kea", *NET, *URL, "--kea-hooks", '/x"'), "--kea-hooks is"),
        (("hook", *NET, *URL, "--context", "a\nb"), "--context has a control character"),
        (
            (
                "kea", *NET, "--ipv6", "2001:db8::/64", "--boot-url", "http://boot.example", "--dns", "192.0.2.3",
                "--dns", "2001:db8::3", "--tftp-server", "192.0.2.2", "--tftp-server", "2001:db8::2",
            ),
            "add --output FOLDER, or give only one of --subnet and --ipv6",
        ),
    ],
)  # fmt: skip
def test_wrong_input_is_a_sentence_with_the_option_and_the_fix(arguments: tuple[str, ...], sentence: str) -> None:
    """A usage error with exit code 2; nothing is printed that could be used."""
    code, text = run(*arguments)
    assert code == 2
    assert sentence in text


def test_a_folder_gets_all_that_the_server_needs(tmp_path: Path) -> None:
    """Kea's configuration, TFTP, and a hook that can be executed and names kubeconfig, context and group."""
    code, text = run(
        "kea", *NET, *URL, "--output", str(tmp_path / "out"), "--kubeconfig", "k", "--context", "c",
        "--api-group", "metal.openkcm.dev", "--metalctl", "/opt/metalctl",
    )  # fmt: skip
    folder = tmp_path / "out"
    assert code == 0
    assert sorted(text.split()) == sorted(str(folder / name) for name in ("kea-dhcp4.conf", "lease-hook", "tftp.conf"))
    hook = folder / "lease-hook"
    assert os.access(hook, os.X_OK)
    expected = f"/opt/metalctl lease-hook --kubeconfig {Path('k').absolute()} --context c --api-group metal.openkcm.dev"
    assert expected in hook.read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Exit code 1."""
    (tmp_path / "file").write_text("")
    code, text = run("dnsmasq", *NET, *URL, "--output", str(tmp_path / "file" / "x"))
    assert code == 1
    assert "choose another --output" in text
