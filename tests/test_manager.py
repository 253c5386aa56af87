"""The manager's own assembly: what the options make of its parts."""

import base64
import json
from pathlib import Path

import pytest

from metal.api.core import SECRET
from metal.bmc.redfish.pool import RedfishPool
from metal.boot.errors import ImageError
from metal.config import parse
from metal.controllers.endpoint.prefix_file import PrefixFile
from metal.manager import Manager, Parts
from tests.boot import registry as oci
from tests.boot.registry import basic
from tests.kube.client.fakeapi import FakeAPI
from tests.kube.client.pki import Authority


async def test_images_come_from_a_private_registry_with_the_secret_of_the_configuration(tmp_path: Path) -> None:
    """registries.authSecret in the manager's namespace, registries.servers for the authority."""
    authority, api = Authority(), FakeAPI()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    async with oci.running(authority.server_context(tmp_path)) as registry:
        digest = registry.os_image(tag="1")["digest"]
        registry.account = "robot:s3cret"
        text = f"""
namespace: site
registries:
  allowed: ["{registry.name}"]
  authSecret: credentials
  servers: [{{name: "{registry.name}", caFile: {tmp_path / "ca.pem"}}}]
"""
        manager = Manager(Parts(api, RedfishPool(), parse(text, "f"), PrefixFile(), tmp_path / "images"))
        await manager.images.start()
        with pytest.raises(ImageError, match="the Secret site/credentials does not exist"):
            await manager.images.resolve(f"{registry.name}/os:1", "amd64")
        config = json.dumps({"auths": {registry.name: {"auth": basic(registry.account)[6:]}}})
        data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
        await api.create(SECRET, {"metadata": {"name": "credentials", "namespace": "other"}, "data": data})
        await api.create(SECRET, {"metadata": {"name": "credentials", "namespace": "site"}, "data": data})
        fresh = Manager(Parts(api, RedfishPool(), parse(text, "f"), PrefixFile(), tmp_path / "images"))
        assert (await fresh.images.resolve(f"{registry.name}/os:1", "amd64")).pinned.digest == digest
        for each in (manager, fresh):
            await each.images.aclose()
