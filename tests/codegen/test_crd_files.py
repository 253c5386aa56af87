"""`python -m metal.codegen.crd_files`."""

from pathlib import Path

import pytest
import yaml

from metal.api.kinds import kinds
from metal.codegen import crd_files
from metal.codegen.crd import crds


def test_the_committed_files_are_fresh() -> None:
    """What is in config/crd is what the structs say now."""
    folder = Path(__file__).parents[2] / "config" / "crd"
    assert crd_files.stale(folder, crd_files.files("metal.ironcore.dev")) == []


def test_files_hold_the_crds(tmp_path: Path) -> None:
    """Each file is one CRD, read back by a YAML parser without loss."""
    assert crd_files.main(["--output", str(tmp_path)]) == 0
    read = [yaml.safe_load(path.read_text()) for path in sorted(tmp_path.glob("*.yaml"))]
    wanted = sorted(crds(kinds()), key=lambda crd: (crd["spec"]["group"], crd["spec"]["names"]["plural"]))
    assert read == wanted


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Generating twice leaves no diff, and no alias of YAML hides a repeated part."""
    crd_files.main(["--output", str(tmp_path)])
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    crd_files.main(["--output", str(tmp_path)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert not any(b"&id" in text for text in first.values())


@pytest.mark.parametrize("damage", ["edit", "remove", "add"])
def test_a_stale_file_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    """An edited, a missing and a left-over file each fail the check, by name and with the fix."""
    crd_files.main(["--output", str(tmp_path)])
    victim = tmp_path / "metal.ironcore.dev_bmcs.yaml"
    if damage == "edit":
        victim.write_text(victim.read_text() + "# by hand\n")
    elif damage == "remove":
        victim.unlink()
    else:
        victim = tmp_path / "metal.ironcore.dev_dragons.yaml"
        victim.write_text("")
    assert crd_files.main(["--check", "--output", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert victim.name in error
    assert "make generate" in error
    assert crd_files.main(["--output", str(tmp_path)]) == 0
    assert crd_files.main(["--check", "--output", str(tmp_path)]) == 0


def test_stdout_prints_every_document(capsys: pytest.CaptureFixture[str]) -> None:
    """`--stdout` is what `kubectl apply -f -` wants, under the group that was asked for."""
    assert crd_files.main(["--stdout", "--api-group", "metal.openkcm.dev"]) == 0
    documents = [document for document in yaml.safe_load_all(capsys.readouterr().out) if document]
    assert [d["spec"]["group"] for d in documents].count("metal.openkcm.dev") == 9
