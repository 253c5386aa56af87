"""The script that DHCP servers call."""

import subprocess
from pathlib import Path

from metal.boot.dhcp.hook import script


def test_the_script_passes_its_arguments_unchanged(tmp_path: Path) -> None:
    """Words with blanks and quotes stay one word each, of the command and of the caller."""
    hook = tmp_path / "hook"
    hook.write_text(script(["/bin/echo", "it's $HOME", "-n;x"]))
    done = subprocess.run(["sh", str(hook), "add", "a b", "$(id)"], capture_output=True, text=True, check=True)
    assert done.stdout == "it's $HOME -n;x add a b $(id)\n"
