"""The bill of materials, and the archive that becomes the image, without building one."""

import io
import json
import tarfile
from pathlib import Path

from images.manager import container, root, sbom
from images.manager.python import Distribution
from images.manager.root import Package

from images import tree

EPOCH = 1_700_000_000
PACKAGES = [Package("libc6", "2.36-9+deb12u14", "amd64", "glibc_2.36-9+deb12u14", "ab" * 32)]
DISTRIBUTIONS = [Distribution("typing_extensions", "4.16.0", "PSF-2.0")]

MODULES = [Distribution("github.com/coreos/butane", "v0.24.0", "NOASSERTION")]


def test_packages_are_named_by_purl() -> None:
    """Scanners find each package by its purl; what is special in a version is escaped, a Python name normalised."""
    document = json.loads(sbom.document(PACKAGES, DISTRIBUTIONS, MODULES, "0.1.0", EPOCH))
    image, debian, python, go = document["packages"]

    assert debian["externalRefs"][0]["referenceLocator"] == (
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12"
    )
    assert debian["sourceInfo"] == "built from the Debian source package glibc 2.36-9+deb12u14"
    assert python["externalRefs"][0]["referenceLocator"] == "pkg:pypi/typing-extensions@4.16.0"
    assert go["externalRefs"][0]["referenceLocator"] == "pkg:golang/github.com/coreos/butane@v0.24.0"
    assert python["licenseDeclared"] == "PSF-2.0"
    assert document["relationships"][0]["relatedSpdxElement"] == image["SPDXID"]
    assert document["creationInfo"]["created"] == "2023-11-14T22:13:20Z"


def test_the_document_depends_on_its_contents_alone() -> None:
    """The same packages give the same bytes; another version gives another namespace."""
    first = sbom.document(PACKAGES, DISTRIBUTIONS, MODULES, "0.1.0", EPOCH)
    other = json.loads(sbom.document(PACKAGES, DISTRIBUTIONS, MODULES, "0.1.1", EPOCH))

    assert sbom.document(PACKAGES, DISTRIBUTIONS, MODULES, "0.1.0", EPOCH) == first
    assert other["documentNamespace"] != json.loads(first)["documentNamespace"]


def test_the_archive_is_sorted_and_has_one_time(tmp_path: Path) -> None:
    """Whatever the order in which files were found, the archive is the same, with owners, links and modes kept."""
    files = {"usr/b": tree.file(b"b", 0o755), "usr": tree.folder(), "a": tree.link("usr/b")}
    files["data"] = tree.Entry(tree.folder().mode, b"", root.USER, root.USER)
    container.write_tar(files, tmp_path / "one", EPOCH)
    container.write_tar(dict(reversed(files.items())), tmp_path / "two", EPOCH)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with tarfile.open(fileobj=io.BytesIO((tmp_path / "one").read_bytes())) as archive:
        found = {member.name: member for member in archive}
    assert list(found) == ["a", "data", "usr", "usr/b"]
    assert {member.mtime for member in found.values()} == {EPOCH}
    assert (found["data"].uid, found["usr/b"].mode, found["a"].linkname) == (65532, 0o755, "usr/b")


def test_dropped_packages_are_not_asked_for() -> None:
    """packages.txt names what is wanted and what is dropped, and nothing as both."""
    include, dropped = root.wanted()

    assert "python3.11-minimal" in include
    assert "dpkg" in dropped
    assert not set(include) & dropped
