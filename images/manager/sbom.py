"""The bill of materials of an image, as SPDX 2.3 in JSON (spdx.github.io/spdx-spec/v2.3)."""

import datetime
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from images.manager.python import Distribution
from images.manager.root import Package

NAME = "metal-operator"


def document(
    packages: Iterable[Package],
    distributions: Iterable[Distribution],
    modules: Iterable[Distribution],
    version: str,
    epoch: int,
) -> str:
    """The document: one entry for each Debian and Python package and Go module, and one for the image.

    The same packages, version and time (seconds since 1970) give the same bytes.
    """
    described = _image(version)
    contained = [_debian(one) for one in packages] + [_python(one) for one in distributions]
    contained += [_go(one) for one in modules]
    relations = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", described)]
    relations += [_relation(described["SPDXID"], "CONTAINS", one) for one in contained]
    digest = hashlib.sha256(json.dumps([version, contained]).encode()).hexdigest()[:32]
    created = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps(
        {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{NAME}-{version}",
            "documentNamespace": f"urn:metal-operator:sbom:{version}:{digest}",
            "creationInfo": {"created": created, "creators": ["Tool: metal-operator-images"]},
            "packages": [described, *contained],
            "relationships": relations,
        },
        indent=1,
    )


def _image(version: str) -> dict[str, Any]:
    return _package("image", NAME, version, "Apache-2.0") | {"primaryPackagePurpose": "CONTAINER"}


def _debian(one: Package) -> dict[str, Any]:
    name, version = quote(one.name, safe=""), quote(one.version, safe="")
    reference = f"pkg:deb/debian/{name}@{version}?arch={one.architecture}&distro=debian-12"
    source = one.source.replace("_", " ")
    return _package("deb", one.name, one.version, "NOASSERTION", reference) | {
        "sourceInfo": f"built from the Debian source package {source}",
        "checksums": [{"algorithm": "SHA256", "checksumValue": one.sha256}],
    }


def _python(one: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", one.name).lower()
    return _package("python", one.name, one.version, one.license, f"pkg:pypi/{name}@{quote(one.version, safe='')}")


def _go(one: Distribution) -> dict[str, Any]:
    return _package("go", one.name, one.version, one.license, f"pkg:golang/{one.name}@{quote(one.version, safe='')}")


def _package(kind: str, name: str, version: str, license_: str, reference: str = "") -> dict[str, Any]:
    package: dict[str, Any] = {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license_,
        "copyrightText": "NOASSERTION",
    }
    if reference:
        located = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": reference}
        package["externalRefs"] = [located]
    return package


def _relation(subject: str, kind: str, other: dict[str, Any]) -> dict[str, str]:
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other["SPDXID"]}
