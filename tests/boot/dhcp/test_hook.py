"""The script that DHCP servers call."""

import os
import subprocess
from pathlib import Path

from metal.boot.dhcp.hook import script


def test_the_script_passes_its_arguments_unchanged(tmp_path: Path) -> None:
    """Words with blanks and quotes stay one word each, of the command and of the caller."""
    hook = tmp_path / "hook"
    hook.write_text(script(["/bin/echo", "it's $HOME", "-n;x"]))
    done = subprocess.run(["sh", str(hook), "add", "a b", "$(id)"], capture_output=True, text=True, check=True)
    assert done.stdout == "it's $HOME -n;x add a b $(id)\n"


def test_calls_wait_for_each_other(tmp_path: Path) -> None:
    """While one runs, no other one does: the end of a lease must not overtake the lease that follows it."""
    hook, running = tmp_path / "hook", tmp_path / "running"
    hook.write_text(script(["/bin/cat", str(running)]))
    os.mkfifo(running)
    with subprocess.Popen(["sh", str(hook)], stderr=subprocess.DEVNULL) as call:
        with running.open("w"):  # opens when the command reads, which then waits for the end of the file
            second = subprocess.run(["flock", "--nonblock", str(hook), "true"], check=False)
        call.wait(timeout=10)
    assert second.returncode == 1
