"""What `metalctl up` suggests to try next works as it is printed."""

from pathlib import Path

import pytest

from metal.cli.run.simulated_fleet import FleetOptions
from metal.cli.run.standalone import Standalone
from metal.config import Config

SAMPLE = "apply -f config/samples/first-claim.yaml"


def test_the_sample_claim_is_suggested_when_its_image_is_there(tmp_path: Path) -> None:
    """A simulated fleet has it, on the usual port."""
    told = Standalone(tmp_path, Config(), FleetOptions(1)).greeting()
    assert SAMPLE in told
    assert "--api-group" not in told


@pytest.mark.parametrize(
    ("fleet", "group"),
    [(FleetOptions(0), ""), (FleetOptions(1, images_port=18084), ""), (FleetOptions(1), "metal.openkcm.dev")],
)
def test_elsewhere_it_would_fail_and_bmcs_are_suggested(fleet: FleetOptions, group: str, tmp_path: Path) -> None:
    """No image of that name, or no kind of that group; and `status` needs to know the group."""
    told = Standalone(tmp_path, Config(api_group=group) if group else Config(), fleet).greeting()
    assert SAMPLE not in told
    assert f"--kubeconfig {tmp_path}/kubeconfig get bmcs,endpoints" in told
    assert told.endswith(f"--api-group {group}" if group else f"--kubeconfig {tmp_path}/kubeconfig")
