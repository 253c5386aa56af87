"""Queries the host's apt for Debian packages: sources, versions and downloads."""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class BuildError(Exception):
    """The image cannot be built; the text says what is missing and what to do."""


def run(*command: str, **more: object) -> str:
    """Runs a program and returns what it prints.

    Raises:
        BuildError: it is missing or failed; the end of its error output is in the text.
    """
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, **more)  # type: ignore[call-overload] # options are passed through
    except FileNotFoundError as missing:
        raise BuildError(f"{command[0]} is missing: apt-get install the packages that docs/lab.md lists") from missing
    except subprocess.CalledProcessError as failed:
        tail = "\n".join(failed.stderr.strip().splitlines()[-15:])
        raise BuildError(f"{command[0]} failed with {failed.returncode}:\n{tail}") from failed
    return str(done.stdout)


def sources() -> str:
    """The machine's apt sources whose Release file says Debian, as one-line entries."""
    listed = run(
        "apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"
    )
    entries = [line.split(" ") for line in listed.splitlines()]
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    wanted = [f"deb {signed}{uri} {suite} {part}\n" for origin, uri, suite, part in entries if origin == "Debian"]
    if not wanted:
        raise BuildError(
            "apt knows no Debian source with an index: run apt-get update, or look at /etc/apt/sources.list"
        )
    return "".join(dict.fromkeys(wanted))


def suite(source_list: str) -> str:
    """The release that the first source names, such as bookworm."""
    return source_list.splitlines()[0].split()[-2]


def resolve(packages: list[str], source_list: str, base: Sequence[str] = ("?essential",)) -> dict[str, str]:
    """Versions of the packages, their dependencies and Debian's essential set, from apt's present index."""
    with tempfile.TemporaryDirectory() as scratch:
        options = _options(source_list, Path(scratch))
        told = run("apt-get", *options, "--simulate", "--no-install-recommends", "install", *base, *packages)
    found = re.findall(r"^Inst (\S+) \((\S+) ", told, re.MULTILINE)
    if not found:
        raise BuildError("apt resolved no packages: run apt-get update")
    return dict(sorted(found))


def unpack(package: str, version: str, source_list: str, into: Path) -> None:
    """Downloads one package at exactly this version and unpacks its files."""
    with tempfile.TemporaryDirectory() as scratch:
        options = _options(source_list, Path(scratch))
        run("apt-get", *options, "download", f"{package}={version}", cwd=scratch)
        (archive,) = Path(scratch).glob("*.deb")
        run("dpkg-deb", "--extract", str(archive), str(into))


def _options(source_list: str, scratch: Path) -> list[str]:
    listing = scratch / "sources.list"
    listing.write_text(source_list)
    settings = {
        "Dir::State::status": os.devnull,
        "Dir::Etc::SourceList": str(listing),
        "Dir::Etc::SourceParts": "-",
        "APT::Sandbox::User": "root",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
