"""config/rbac: what is in it, and that it is what the code declares."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from metal.codegen.rbac import files, main, page, roles

FOLDER = Path(__file__).parents[3]


def test_the_files_are_those_that_the_code_declares() -> None:
    """`make generate` leaves no difference."""
    assert {name: (FOLDER / "config/rbac" / name).read_text() for name in files()} == files()
    assert (FOLDER / "docs/rbac.md").read_text() == page()


def test_nobody_may_list_secrets() -> None:
    """Secrets are read by name only; outside of the manager's namespace they are read and nothing else."""
    verbs = {
        right.where.value: {r.verb for r in roles().rights if r.resource == "secrets" and r.where is right.where}
        for right in roles().rights
    }
    assert verbs == {"everywhere": set(), "tenants": {"get"}, "home": {"create", "delete", "get", "patch"}}


def test_no_rule_has_a_wildcard() -> None:
    """Neither verbs nor resources nor groups are `*`, and nobody may escalate."""
    told = {word for right in roles().rights for word in (right.group, right.resource, right.verb)}
    assert "*" not in told
    assert told.isdisjoint({"bind", "escalate", "impersonate", "roles", "clusterroles"})


def test_another_group_and_namespace() -> None:
    """A distribution with kinds of its own group gets rules for them, in the namespace it says."""
    made = files("metal.openkcm.dev", "boot.openkcm.dev", "infra")
    documents = [document for text in made.values() for document in yaml.safe_load_all(text)]
    assert "ironcore" not in "".join(made.values())
    assert {namespace for document in documents if (namespace := document["metadata"].get("namespace"))} == {"infra"}
    assert {subject["namespace"] for document in documents for subject in document.get("subjects", ())} == {"infra"}
    (named,) = [rule for rule in _rules(documents) if rule["resources"] == ["namespaces"]]
    assert named["resourceNames"] == ["infra"]


def _rules(documents: list[Any]) -> list[Any]:
    return [rule for document in documents for rule in document.get("rules", ())]


def test_a_stale_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check writes nothing and names what is outdated; without it the files are written."""
    where = ["--output", str(tmp_path), "--page", str(tmp_path / "rbac.md")]
    assert main(["--check", *where]) == 1
    assert list(tmp_path.iterdir()) == []
    assert main(where) == 0
    assert main(["--check", *where]) == 0
    (tmp_path / "role.yaml").write_text("")
    assert main(["--check", *where]) == 1
    assert "role.yaml is outdated: run `make generate`" in capsys.readouterr().err
