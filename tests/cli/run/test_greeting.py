"""The greeting of `metalctl up`: its suggestions work as printed, and it names what the configuration lacks."""

from pathlib import Path

import pytest

from metal.cli.run.simulated_fleet import FleetOptions
from metal.cli.run.standalone import Standalone
from metal.cli.run.up import Screen
from metal.config import Config

SAMPLE = "apply -f config/samples/first-claim.yaml"


def test_the_sample_claim_is_suggested_when_its_image_is_there(tmp_path: Path) -> None:
    """A simulated fleet on the default port has the image of the sample claim."""
    greeting = Standalone(tmp_path, Config(), FleetOptions(1)).greeting()
    assert SAMPLE in greeting
    assert "--api-group" not in greeting


@pytest.mark.parametrize(
    ("fleet", "group"),
    [(FleetOptions(0), ""), (FleetOptions(1, images_port=18084), ""), (FleetOptions(1), "metal.openkcm.dev")],
)
def test_without_its_image_or_group_the_sample_is_not_suggested(
    fleet: FleetOptions, group: str, tmp_path: Path
) -> None:
    """Without that image or that API group the sample is not suggested; `status` gets the API group."""
    greeting = Standalone(tmp_path, Config(api_group=group) if group else Config(), fleet).greeting()
    assert SAMPLE not in greeting
    assert f"--kubeconfig {tmp_path}/kubeconfig get bmcs,endpoints" in greeting
    assert greeting.endswith(f"--api-group {group}" if group else f"--kubeconfig {tmp_path}/kubeconfig")


def test_a_missing_probe_image_is_reported_with_the_steps_to_get_one(tmp_path: Path) -> None:
    """Without simulated machines and probeImage, the greeting says what waits and how to build and publish an image."""
    greeting = Standalone(tmp_path, Config(), FleetOptions(0)).greeting()
    assert "probeImage is not set: servers wait for it in state Discovery" in greeting
    assert 'make images IMAGES_ARGS="--kernel generic"' in greeting
    assert "images/push.py .cache/images/out/discovery http://HOST:PORT/os/discovery:latest" in greeting
    assert "set probeImage: HOST:PORT/os/discovery:latest" in greeting


@pytest.mark.parametrize(
    ("config", "fleet"),
    [(Config(probe_image="registry.example.com/os/discovery:1"), FleetOptions(0)), (Config(), FleetOptions(1))],
)
def test_a_configured_probe_image_needs_no_report(config: Config, fleet: FleetOptions, tmp_path: Path) -> None:
    """A configured probe image, or the one of the simulated fleet, is used."""
    assert "probeImage" not in Standalone(tmp_path, config, fleet).greeting()


def test_json_lines_are_alone_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """The greeting goes to stderr then, so that a program can read stdout line by line."""
    Screen(interactive=False, logs_are_json=True).echo("kubeconfig: …")
    Screen(interactive=False, logs_are_json=False).echo("hello")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("hello\n", "kubeconfig: …\n")
