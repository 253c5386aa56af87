"""Shell completion."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from metal.cli.main import COMMANDS, main
from metal.cli.support import completing
from tests.cli.inprocess import bench


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, "DEADLINE", 20.0)


async def offers(kubeconfig: Path | str, line: str) -> list[str]:
    """Return the candidates of bash for the last word of a line."""
    _, *words, last = line.split(" ")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(kubeconfig))
        shell = BashComplete(main, {}, "metalctl", "_METALCTL_COMPLETE")
        found = await asyncio.to_thread(shell.get_completions, words, last)
    return [item.value for item in found]


async def test_commands_kinds_and_names_are_offered(tmp_path: Path) -> None:
    """Names are read from the API server of the line; kinds are completed by all their names."""
    async with bench(tmp_path) as b:
        await b.server("rack1-a")
        await b.server("rack1-b")
        await b.server("rack2-a")
        await b.claim("web")
        here = b.live.kubeconfig
        assert await offers(here, "metalctl cor") == ["cordon"]
        assert await offers(here, "metalctl cordon rack1") == ["rack1-a", "rack1-b"]
        assert await offers(here, "metalctl power off rack2") == ["rack2-a"]
        assert await offers(here, "metalctl release w") == ["web"]
        assert await offers(here, "metalctl release -n kube-s") == ["kube-system"]
        assert await offers(here, "metalctl get serverc") == ["serverclaims"]
        assert "servers" in await offers(here, "metalctl get server")
        assert await offers(here, "metalctl get srv rack2") == ["rack2-a"]
        assert await offers(here, "metalctl describe scl/") == ["scl/web"]
        assert await offers(here, "metalctl why cl") == ["claim/"]
        assert await offers(here, "metalctl why server/rack2") == ["server/rack2-a"]


async def test_without_an_api_nothing_is_offered() -> None:
    """Without an API server there are no candidates and no error output."""
    assert await offers("/nonexistent", "metalctl cordon r") == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_is_printed(shell: str) -> None:
    """The script calls metalctl, and bash can parse it."""
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_METALCTL_COMPLETE={shell}_complete" in result.output
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=result.output.encode(), check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_a_place_in_the_documentation(name: str) -> None:
    """Every command has --help, and docs/metalctl.md lists it."""
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    page = (Path(__file__).parents[3] / "docs" / "metalctl.md").read_text()
    assert f"`{name}" in page
