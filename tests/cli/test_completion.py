"""What a shell gets while somebody types."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from metal.cli.main import COMMANDS, main
from tests.cli.inprocess import Bench, bench
from tests.cli.live import METALCTL


async def offers(b: Bench, line: str, **more: str) -> list[str]:
    """What bash is offered for the last word of a line (an empty one where it ends with a space)."""
    words = line.split(" ")
    env = {
        **os.environ, "KUBECONFIG": str(b.live.kubeconfig), "_METALCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), **more,
    }  # fmt: skip
    process = await b.live.program(METALCTL, env=env)
    out, err = await process.communicate()
    assert err == b""
    return [entry.partition(",")[2] for entry in out.decode().split()]


async def test_commands_kinds_and_names_are_offered(tmp_path: Path) -> None:
    """Names are those of the API that the line reaches; kinds have every name that they answer to."""
    async with bench(tmp_path) as b:
        await b.server("rack1-a")
        await b.server("rack1-b")
        await b.server("rack2-a")
        await b.claim("web")
        assert await offers(b, "metalctl cor") == ["cordon"]
        assert await offers(b, "metalctl cordon rack1") == ["rack1-a", "rack1-b"]
        assert await offers(b, "metalctl power off rack2") == ["rack2-a"]
        assert await offers(b, "metalctl release w") == ["web"]
        assert await offers(b, "metalctl release -n kube-s") == ["kube-system"]
        assert await offers(b, "metalctl get server") == ["serverbootconfigurations", "serverclaims", "servers"]
        assert await offers(b, "metalctl get srv rack2") == ["rack2-a"]
        assert await offers(b, "metalctl describe scl/") == ["scl/web"]
        assert await offers(b, "metalctl why cl") == ["claim/"]
        assert await offers(b, "metalctl why server/rack2") == ["server/rack2-a"]


async def test_without_an_api_nothing_is_offered(tmp_path: Path) -> None:
    """And nothing is said that would spoil the line."""
    async with bench(tmp_path) as b:
        assert await offers(b, "metalctl cordon r", KUBECONFIG="/nonexistent") == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_is_printed(shell: str) -> None:
    """It asks metalctl itself; bash can read it."""
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_METALCTL_COMPLETE={shell}_complete" in result.output
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=result.output.encode(), check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_a_place_in_the_documentation(name: str) -> None:
    """docs/metalctl.md has a line for each; those on objects and servers tell their exit codes."""
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    page = (Path(__file__).parents[2] / "docs" / "metalctl.md").read_text()
    assert f"`{name}" in page
