"""docs/metrics.md is written from the metrics themselves."""

from pathlib import Path

import pytest

from metal.codegen import metrics


def test_the_page_names_every_metric_with_type_labels_unit_and_meaning() -> None:
    """Names are as Prometheus shows them."""
    page = metrics.page()
    assert "| `metal_servers` | gauge | `state` |  | Servers by state. |" in page
    assert "| `controller_runtime_reconcile_time_seconds` | histogram | `controller` | seconds |" in page
    assert "| `rest_client_requests_total` | counter | `code`, `method`, `host` |" in page
    assert "| `metal_image_downloaded_bytes_total` | counter |  | bytes |" in page


def test_names_are_ours_or_those_of_the_go_libraries() -> None:
    """Dashboards for controller-runtime work, and nothing collides with kube-state-metrics."""
    rows = [row for section in metrics.sections().values() for row in section]
    prefixes = ("metal_", "controller_runtime_", "workqueue_", "rest_client_", "leader_election_")
    assert all(row.name.startswith(prefixes) for row in rows)
    assert len({row.name for row in rows}) == len(rows)


def test_no_label_names_an_object() -> None:
    """The number of series does not grow with the fleet. `name` is that of a queue or a Lease."""
    rows = [row for section in metrics.sections().values() for row in section]
    assert not {"server", "bmc", "claim", "namespace", "uid", "address"} & {
        label for row in rows for label in row.labels
    }
    named = {row.name for row in rows if "name" in row.labels}
    assert all(name.startswith(("workqueue_", "leader_election_")) for name in named)


def test_a_stale_page_fails_the_check_until_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CI notices a metric without its row."""
    page = tmp_path / "metrics.md"
    assert metrics.main(["--check", "--output", str(page)]) == 1
    assert "make generate" in capsys.readouterr().err
    assert metrics.main(["--output", str(page)]) == 0
    assert metrics.main(["--check", "--output", str(page)]) == 0
