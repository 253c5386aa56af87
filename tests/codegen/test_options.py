"""docs/configuration.md is written from the options themselves."""

from pathlib import Path

import pytest

from metal.codegen import options


def test_the_page_names_every_option_with_default_and_meaning() -> None:
    """Sections are prefixes, as people say them: listen.boot."""
    page = options.page()
    assert '| `listen.boot` | `"127.0.0.1:8082"` | Boot server:' in page
    assert "| `timeouts.graceful` | `120s` |" in page
    assert "| `registries.cacheSize` | `21474836480` |" in page


def test_a_stale_page_fails_the_check_and_writing_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CI notices an option without its row."""
    page = tmp_path / "configuration.md"
    assert options.main(["--check", "--output", str(page)]) == 1
    assert "make generate" in capsys.readouterr().err
    assert options.main(["--output", str(page)]) == 0
    assert options.main(["--check", "--output", str(page)]) == 0
