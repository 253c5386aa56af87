"""What the chart and config/ say agrees with the code, without a cluster."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from charts import generate

from metal.config import ConfigError, load, parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from tests.install.helm import CHART, TOP, VALUE_SETS

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
CONFIG = TOP / "config"


def test_generated_files_of_the_chart_are_fresh() -> None:
    """CRDs, rules, alerts, the schema of config and the table of values are what `make generate` writes."""
    assert generate.main(["--check"]) == 0


def test_every_value_is_documented_once() -> None:
    """Each value has a sentence in values.yaml, and a row in the chart's README."""
    documented = generate.documented()
    readme = (CHART / "README.md").read_text()

    assert len(documented) > 50
    assert all(doc.endswith((".", ":")) and readme.count(f"| `{name}` |") == 1 for name, _, doc in documented)


def test_a_value_without_a_comment_stops_the_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a value and does not explain it is told the line."""
    (tmp_path / "values.yaml").write_text("# A thing.\nthing: 1\n\nother: 2\n")
    monkeypatch.setattr(generate, "CHART", tmp_path)

    with pytest.raises(ValueError, match="line 4: other has no comment"):
        generate.documented()


def schema_leaves(schema: dict[str, Any], values: Any, prefix: str = "") -> set[str]:
    """Names in the values that the schema does not know."""
    known = schema.get("properties", {})
    found: set[str] = set()
    for name, value in values.items():
        if name not in known:
            found.add(prefix + name)
        elif isinstance(value, dict) and known[name].get("properties"):
            found |= schema_leaves(known[name], value, f"{prefix}{name}.")
    return found


def test_the_schema_knows_every_value() -> None:
    """A value that values.yaml has is in the schema by name, and the other way round."""
    assert schema_leaves(SCHEMA, VALUES) == set()
    assert set(SCHEMA["properties"]) - {"global"} == set(VALUES)


def merged(base: Any, above: Any) -> Any:
    """Values as helm lays them over each other."""
    if not (isinstance(base, dict) and isinstance(above, dict)):
        return above
    return {**base, **{name: merged(base.get(name), value) for name, value in above.items()}}


@pytest.mark.parametrize("path", VALUE_SETS, ids=lambda path: path.name.partition("-")[0])
def test_the_schema_accepts_the_value_sets(path: Path) -> None:
    """The value sets that helm is tested with are right by the schema."""
    jsonschema_rs.validate(SCHEMA, merged(VALUES, yaml.safe_load(path.read_text())))


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 2},
        {"replicas": "two"},
        {"image": {"digest": "sha256:short"}},
        {"image": {"repository": "registry.example.com/metal:v1"}},
        {"config": {"probeImages": "x"}},
        {"config": {"timeouts": {"discovery": "soon"}}},
        {"config": {"namespace": "elsewhere"}},
        {"config": {"bmc": {"verify": "yes"}}},
        {"exposure": {"type": "Ingress"}},
        {"networkPolicy": {"machineCIDRs": ["192.0.2.1"]}},
        {"macPrefixes": [{"macPrefix": 23, "type": "bmc"}]},
        {"imageCache": {"volumeSize": 20}},
        {"terminationGracePeriodSeconds": 1},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_the_schema_refuses_wrong_values(wrong: dict[str, Any]) -> None:
    """Misspelt names, wrong types, impossible values, and what the chart itself decides are refused."""
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(SCHEMA, merged(VALUES, wrong))


def test_the_schema_takes_what_the_configuration_takes() -> None:
    """Each default of the configuration, written as a value, is right by the schema."""
    values = {
        "bootAttempts": 3,
        "registries": {"cacheSize": "20Gi", "allowed": ["ghcr.io"]},
        "bmc": {"verify": True},
        "timeouts": {"discovery": "30m", "power": 600, "bootRetry": 0.5},
        "election": {"drain": "1500ms"},
    }

    jsonschema_rs.validate(SCHEMA, merged(VALUES, {"config": values}))
    assert parse(yaml.safe_dump(values), "values").timeouts.boot_retry == 0.5


def test_kustomize_lists_every_crd_and_role() -> None:
    """A kind that is added cannot be forgotten in config/crd/Kustomization."""
    for folder in ("crd", "rbac"):
        listed = yaml.safe_load((CONFIG / folder / "Kustomization").read_text())["resources"]
        assert listed == sorted(path.name for path in (CONFIG / folder).glob("*.yaml"))


def test_the_sample_site_is_a_configuration() -> None:
    """The files of config/site can be read by a manager."""
    config = load(CONFIG / "site/metal.yaml")

    assert config.boot_url == "http://192.0.2.1:8082"
    assert len(PrefixFile(CONFIG / "site/mac-prefixes.yaml").prefixes) == 2


def test_a_manager_rejects_a_configuration_without_site_values() -> None:
    """config/default without an overlay starts no manager, because its advertised addresses are missing."""
    with pytest.raises(ConfigError, match=r"set advertise\.boot to the URL that they use"):
        load(CONFIG / "manager/metal.yaml")
