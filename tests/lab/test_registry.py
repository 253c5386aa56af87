"""Debian's registry accepts the images: the boot server resolves exactly what was built."""

import hashlib
import json
import urllib.request

import pytest

from images import oci
from tests.lab.registry import OCIRegistry
from tests.lab.run import IMAGES, Run
from tests.lab.site import HOST, Site

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]


def test_images_pushed_to_a_foreign_registry_come_back_unchanged(run: Run, site: Site) -> None:
    """A tag returns the index, and the index leads to a manifest that the registry serves by its digest."""
    registry = OCIRegistry(run, site.operator, f"{HOST}:5000")
    registry.push(IMAGES / "demo", "os/demo", "v1")

    def fetch(reference: str, media_type: str) -> bytes:
        request = urllib.request.Request(f"http://{HOST}:5000/v2/os/demo/manifests/{reference}")
        request.add_header("Accept", media_type)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - always http
            return bytes(answer.read())

    index = site.neighbor.inside(lambda: fetch("v1", oci.INDEX))
    digest = json.loads(index)["manifests"][0]["digest"]
    manifest = site.neighbor.inside(lambda: fetch(digest, oci.MANIFEST))

    assert index == (IMAGES / "demo/index.json").read_bytes()
    assert digest == "sha256:" + hashlib.sha256(manifest).hexdigest()
