"""Alerts of config/prometheus fire when they should, say what to do, and name metrics that exist."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal.codegen import metrics

HERE = Path(__file__).parent
TOP = HERE.parent.parent
GROUPS = yaml.safe_load((TOP / "config/prometheus/alerts.yaml").read_text())["spec"]["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
NAMES = [rule["alert"] for rule in RULES]
UNIT_TESTS = sorted(HERE.glob("*.yaml"))
_METRIC = re.compile(r"\b(?:metal|kube|controller_runtime|workqueue|rest_client|leader_election)_[a-z_]+")


def rows() -> dict[str, metrics.Row]:
    return {row.name: row for section in metrics.sections().values() for row in section}


def promtool(folder: Path, *arguments: str) -> str:
    """What promtool printed; the rules are in rules.yaml of the folder."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": GROUPS}))
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("promtool")
def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    """Expressions and templates are valid."""
    assert f"{len(RULES)} rules found" in promtool(tmp_path, "check", "rules", "rules.yaml")


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("file", UNIT_TESTS, ids=lambda file: file.stem)
def test_alerts_fire_when_they_should_and_no_others_do(file: Path, tmp_path: Path) -> None:
    """Each unit test lists all alerts that fire at a time."""
    shutil.copy(file, tmp_path)
    assert "SUCCESS" in promtool(tmp_path, "test", "rules", file.name)


def test_every_alert_has_a_unit_test() -> None:
    """An alert that nobody has seen firing is not relied upon."""
    tested = {name for file in UNIT_TESTS for name in re.findall(r'alertname="(\w+)"', file.read_text())}

    assert len(NAMES) == len(set(NAMES))
    assert tested == set(NAMES)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_asks_for_documented_metrics_with_their_labels(rule: dict[str, Any]) -> None:
    """Every metric is a row of docs/metrics.md, and every label that is matched is one of its labels."""
    named = set(_METRIC.findall(rule["expr"]))
    assert named
    for name in named:
        row = rows()[re.sub(r"_(bucket|sum|count)$", "", name)]
        matched = re.findall(name + r"\{([^}]*)\}", rule["expr"])
        labels = {label for text in matched for label in re.findall(r"(\w+)(?:=~|!~|!=|=)", text)}
        assert labels <= set(row.labels), name


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_says_what_is_the_case_and_what_to_do(rule: dict[str, Any]) -> None:
    """A pager shows summary, description and action, and knows the severity."""
    assert {"summary", "description", "action"} == set(rule["annotations"])
    assert all(text.strip().endswith(".") for text in rule["annotations"].values())
    assert rule["labels"]["severity"] in ("critical", "warning")
