"""metalctl on the command line."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from metal.cli.main import COMMANDS, main
from metal.cli.support.connection import missing
from metal.cli.support.datadir import InUse, locked
from metal.config import Config, parse


def run(*args: str) -> tuple[int, str]:
    """Return exit code and output."""
    result = CliRunner().invoke(main, list(args))
    return result.exit_code, result.output


def test_help_lists_every_command_with_a_sentence() -> None:
    """The help lists every command and the first steps."""
    code, text = run("--help")
    assert code == 0
    assert "First steps" in text
    for name in COMMANDS:
        assert name in text


def test_config_prints_a_file_that_is_valid() -> None:
    """The printed file is valid and has the defaults."""
    code, text = run("config")
    assert code == 0
    assert parse(text, "printed") == Config()


def test_config_check_names_the_line(tmp_path: Path) -> None:
    """An invalid file is a usage error with exit code 2 and the line."""
    file = tmp_path / "metal.yaml"
    file.write_text("listen:\n  api: nowhere\n")
    code, text = run("config", "--check", str(file))
    assert code == 2
    assert f"{file} line 2: api is 'nowhere'" in " ".join(text.split())


def test_config_check_accepts_a_valid_file(tmp_path: Path) -> None:
    """A valid file ends with 0."""
    file = tmp_path / "metal.yaml"
    file.write_text("namespace: metal\n")
    assert run("config", "--check", str(file)) == (0, f"{file}: valid\n")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("up", "--api-listen", "8443"), "write address:port"),
        (("up", "--fleet", "-1"), "--fleet"),
        (("up", "--config", "/nonexistent.yaml"), "cannot be read"),
        (("lease-hook", "steal", "a", "b"), "use add, old or del"),
        (("nonsense",), "No such command"),
        (("--kubeconfig", "x", "nonsense"), "No such command"),
        (("--kubeconfig", "x", "up"), "metalctl up has no option --kubeconfig"),
        (("up", "--boot-listen", "0.0.0.0:8082"), "set advertise.boot"),
        (("up", "--api-group", "foo"), "write a DNS name in lower case with a dot"),
        (("up", "--api-group", "Metal.OpenKCM.dev"), "--api-group"),
        (("up", "--api-group", ""), "write a DNS name"),
        (("status", "--api-group", "foo"), "write a DNS name"),
        (("sim", "--api-group", "foo"), "write a DNS name"),
        (("lease-hook", "--api-group", "foo", "add", "a", "b"), "write a DNS name"),
    ],
)
def test_usage_errors_exit_with_2_and_a_message(args: tuple[str, ...], complaint: str) -> None:
    """A usage error has exit code 2 and starts nothing."""
    code, text = run(*args)
    assert code == 2
    assert complaint in " ".join(text.replace("│", " ").split())


def test_status_without_a_control_plane_says_how_to_start_one(tmp_path: Path) -> None:
    """The message names `metalctl up`."""
    code, text = run("status", "--kubeconfig", str(tmp_path / "none"))
    assert code == 1
    assert "metalctl up" in text


@pytest.mark.parametrize("command", [("status",), ("power", "status"), ("evidence", "list"), ("manager",)])
def test_the_kubeconfig_may_stand_before_the_command(command: tuple[str, ...], tmp_path: Path) -> None:
    """As with kubectl; one after the command takes precedence."""
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    code, text = run("--kubeconfig", first, *command)
    assert (code != 0, first in "".join(text.split())) == (True, True), text
    code, text = run("--kubeconfig", first, *command, "--kubeconfig", second)
    assert (code != 0, second in "".join(text.split()), first in text) == (True, True, False), text


def test_other_calls_of_dnsmasq_are_ignored() -> None:
    """Actions of --dhcp-script other than leases are ignored."""
    assert run("lease-hook", "init") == (0, "")


@pytest.mark.parametrize("name", ["--help", "--kubeconfig=/dev/null", "--api-group=evil.example", "-h"])
def test_a_host_name_is_never_an_option_of_the_lease_hook(name: str, tmp_path: Path) -> None:
    """Host names come from DHCP clients and are not parsed as options."""
    code, text = run("lease-hook", "--kubeconfig", str(tmp_path / "none"), "add", "52:54:00:00:00:01", "10.0.0.1", name)
    assert code == 1
    assert str(tmp_path / "none") in "".join(text.split())


def test_a_data_folder_is_private_and_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    """A second process on the same folder is an error."""
    folder = tmp_path / "data"
    with locked(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(InUse, match="choose another --data"), locked(folder):
            pass
    with locked(folder):
        assert (folder / "lock").exists()


def test_a_missing_kubeconfig_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The missing file is the given one, $KUBECONFIG or that of `metalctl up`; none if another place exists."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert missing(tmp_path / "x") == tmp_path / "x"
    assert missing(tmp_path) is None
    assert missing(None) == Path(".metal/kubeconfig")
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/k")
    assert missing(None) == Path("/nonexistent/k")
    monkeypatch.delenv("KUBECONFIG")
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert missing(None) is None


def test_sim_shows_its_latency_and_what_it_is_without_one() -> None:
    """Every number in the help has its default."""
    code, text = run("sim", "--help")
    assert code == 0
    assert "0.0;" in " ".join(text.split()).partition("--latency")[2].partition("--power")[0]
