"""Boot configurations become ready, or report why not."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metal.api.claim import ServerBootConfiguration
from metal.api.core import EVENT, SECRET
from metal.api.ipxe import IPXEBootConfig
from metal.api.meta import Kind
from metal.boot.errors import ImageError
from metal.boot.images import Image
from metal.controllers.bootconfig.watches import setup_boot_configs
from metal.controllers.shared.scope import Context
from metal.kube.client.errors import Forbidden, NotFound
from metal.kube.controller.events import Recorder
from metal.kube.controller.runtime import Runtime
from metal.kube.meta.clock import LoopClock
from metal.kube.meta.conditions import find
from tests.boot.programs import CONVERTS, REFUSES
from tests.machineapi.world import IGNITION, IMAGE, UUID, Clock, World, image, secret

pytestmark = pytest.mark.looptime
REFERENCE = "registry.test:5000/team/os:1"


class Site:
    """A running controller over the API in memory."""

    def __init__(self, world: World) -> None:
        self.world, self.api, self.kinds = world, world.api, world.kinds
        self.runtime = Runtime(self.api, rng=random.Random(1))
        self.clock = LoopClock(Clock().now)
        self.recorder = Recorder(self.api, EVENT, component="test", clock=self.clock)
        context = Context(self.api, self.kinds, self.clock, random.Random(1), self.recorder)
        setup_boot_configs(context, self.runtime, world.images, world.settings)
        self.runtime.background("events", self.recorder.run)

    async def server(self, name: str = "s1") -> None:
        ips = ["10.0.0.7", "fd00::7"]
        interfaces = [{"name": "eth0", "macAddress": "52:54:00:00:00:01", "ips": ips, "source": "OutOfBand"}]
        body = {"metadata": {"name": name}, "spec": {"systemUUID": UUID}, "status": {"networkInterfaces": interfaces}}
        await self.api.create(self.kinds.server, body)

    async def configure(self, image: str = REFERENCE, ignition: str = "ignition", **more: Any) -> None:
        ref = {"ignitionSecretRef": {"name": ignition}} if ignition else {}
        meta = {"name": "sbc", "namespace": "ns", "generation": 1}
        spec = {"serverRef": {"name": "s1"}, "image": image, **ref, **more}
        await self.api.create(self.kinds.boot_config, {"metadata": meta, "spec": spec})

    async def change(self, generation: int, **spec: Any) -> None:
        body = {"metadata": {"generation": generation}, "spec": spec}
        await self.api.patch(self.kinds.boot_config, "sbc", body, "ns")

    async def secret(self, content: Any = IGNITION, **more: bytes) -> None:
        await self.api.apply(SECRET, secret("ignition", ignition=json.dumps(content).encode(), **more), manager="t")

    async def config(self) -> ServerBootConfiguration:
        await asyncio.sleep(1)
        return await self.api.get(self.kinds.boot_config, "sbc", "ns")

    async def child(self) -> IPXEBootConfig:
        return await self.api.get(self.kinds.ipxe, "sbc", "ns")

    async def condition(self, type: str) -> tuple[str, str, str]:
        found = find((await self.config()).status.conditions, type)
        assert found is not None
        return found.status, found.reason, found.message


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(World(tmp_path))
    await made.runtime.start()
    yield made
    await made.runtime.stop(grace=1.0)


async def test_a_configuration_becomes_ready(site: Site) -> None:
    """Its IPXEBootConfig has the same name, is owned by it, and names the blobs by digest."""
    await site.server()
    await site.secret()
    await site.configure()
    config, child = await site.config(), await site.child()
    assert (config.status.state, config.status.waiting_for, config.status.observed_generation) == ("Ready", "", 1)
    assert config.status.since is not None
    assert (await site.condition("ImageValidation"))[:2] == ("True", "Resolved")
    assert (await site.condition("IgnitionValidation"))[:2] == ("True", "Valid")
    (owner,) = child.metadata.owner_references
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (config.metadata.uid, True, True)
    assert child.spec.system_uuid == UUID
    assert child.spec.system_ips == ("10.0.0.7", "fd00::7")
    assert child.spec.ignition_secret_ref is not None
    assert IMAGE.digest.replace(":", "%3A") in child.spec.kernel_url
    assert child.status.state == "Ready"


async def test_what_is_ready_is_what_the_boot_server_serves(site: Site) -> None:
    """A boot window for it gets a script from the boot server."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    await site.world.open("Claim")
    await site.world.lease("10.0.0.7", "52:54:00:00:00:01")
    answer = await site.world.boot.script(UUID, "10.0.0.7")
    assert answer.status == 200
    assert b"rdinit=/init" in answer.body


async def test_nothing_is_written_when_nothing_changes(site: Site) -> None:
    """In an hour a ready configuration causes reads of its Secret and no write."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    before = site.api.version
    calls = len(site.api.calls)
    await asyncio.sleep(3600)
    assert site.api.version == before
    assert {verb for verb, plural, _ in site.api.calls[calls:] if verb != "watch"} <= {"get", "list"}
    assert len(site.api.calls) - calls < 200


async def test_without_a_secret_reference_no_ignition_is_needed(site: Site) -> None:
    """Ready, and no Secret is read."""
    await site.server()
    await site.configure(ignition="")
    assert (await site.config()).status.state == "Ready"
    assert not any(plural == "secrets" for _, plural, _ in site.api.calls)
    assert (await site.child()).spec.ignition_secret_ref is None


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "A boot configuration is Pending while its Server does not exist.",
)
async def test_a_missing_server_is_awaited(site: Site) -> None:
    """The configuration is Pending until the Server exists."""
    await site.secret()
    await site.configure()
    config = await site.config()
    assert (config.status.state, config.status.waiting_for) == ("Pending", "the Server s1 to exist, with a systemUUID")
    await site.server()
    assert (await site.config()).status.state == "Ready"


async def test_a_secret_that_appears_late_is_found(site: Site) -> None:
    """The Error names it; the configuration becomes ready without any other change."""
    await site.server()
    await site.configure()
    assert (await site.config()).status.state == "Error"
    status, reason, message = await site.condition("IgnitionValidation")
    assert (status, reason) == ("False", "SecretMissing")
    assert "Secret ignition does not exist in namespace ns" in message
    await site.secret()
    await asyncio.sleep(10)
    assert (await site.config()).status.state == "Ready"


@pytest.mark.parametrize(
    ("content", "more", "says"),
    [
        ({"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "x"}]}}, {}, "$.storage.files[0].path"),
        ({"ignition": {"version": "1.0.0"}}, {}, "$.ignition.version"),
        (IGNITION, {"format": b"cloud-config"}, "write ignition, fcos or flatcar"),
    ],
)
async def test_an_invalid_ignition_is_a_condition_with_its_json_path(
    site: Site, content: Any, more: dict[str, bytes], says: str
) -> None:
    """Nothing is served; after the correction the configuration is Ready."""
    await site.server()
    await site.secret(content, **more)
    await site.configure()
    config = await site.config()
    assert config.status.state == "Error"
    status, reason, message = await site.condition("IgnitionValidation")
    assert (status, reason) == ("False", "ValidationFailed")
    assert says in message
    with pytest.raises(NotFound):
        await site.child()
    if not more:
        await site.secret()
        await asyncio.sleep(10)
        assert (await site.config()).status.state == "Ready"


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "An Ignition of spec 2 is served as it is: `IgnitionValidation` is Unknown, `NotValidated`, with the version.",
)
async def test_an_ignition_of_spec_2_is_ready_and_not_validated(site: Site) -> None:
    """Cluster API's kubeadm bootstrap provider writes one; only the booted system knows what it means."""
    await site.server()
    await site.secret({"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "not checked"}]}})
    await site.configure()
    assert (await site.config()).status.state == "Ready"
    status, reason, message = await site.condition("IgnitionValidation")
    assert (status, reason) == ("Unknown", "NotValidated")
    assert "has spec version 2.3.0 and is served as it is" in message
    await site.secret({"ignition": {"version": "3.3.0"}})
    await asyncio.sleep(60)
    assert (await site.condition("IgnitionValidation"))[:2] == ("True", "Valid")


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "Butane (`format: fcos`, `flatcar`) is converted by the program butane; its messages are in `IgnitionValidation`.",
)
@pytest.mark.parametrize("format", [b"fcos", b"flatcar"])
async def test_butane_is_converted(site: Site, format: bytes) -> None:
    """Warnings are shown beside the result; an error takes readiness away, with its line."""
    site.world.butane(CONVERTS)
    await site.server()
    await site.secret(format=format)
    await site.configure()
    assert (await site.config()).status.state == "Ready"
    assert await site.condition("IgnitionValidation") == (
        "True", "Valid", "the Ignition in Secret ignition is valid; butane warns: line 3 col 1: Unused key",
    )  # fmt: skip
    site.world.butane(REFUSES)
    await site.secret({}, format=format)
    await asyncio.sleep(60)
    assert (await site.config()).status.state == "Error"
    assert await site.condition("IgnitionValidation") == (
        "False", "ValidationFailed", "Secret ignition: butane: line 5 col 13: path not absolute",
    )  # fmt: skip


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "Where butane is not installed, `IgnitionValidation` is False with reason `ButaneUnavailable` and says what to do.",
)
async def test_without_butane_the_way_out_is_said(site: Site) -> None:
    """Either installing it or leaving the format out makes the configuration Ready."""
    await site.server()
    await site.secret(format=b"fcos")
    await site.configure()
    assert (await site.config()).status.state == "Error"
    status, reason, message = await site.condition("IgnitionValidation")
    assert (status, reason) == ("False", "ButaneUnavailable")
    assert "install it and set boot.butane, or convert the document yourself and leave format out" in message
    site.world.butane(CONVERTS)
    await asyncio.sleep(10)
    assert (await site.config()).status.state == "Ready"


@pytest.mark.threads
async def test_a_conversion_blocks_no_worker(site: Site) -> None:
    """The configuration is Pending until the program has ended, which causes a pass; one that was Ready stays Ready."""
    go = site.world.images.folder / "go"
    site.world.butane(f"while [ ! -e {go} ]; do sleep 0.01; done\n{CONVERTS}")
    await site.server()
    await site.secret(format=b"fcos")
    await site.configure()
    config = await _until_ignition_is(site, "Converting")
    assert (config.status.state, config.status.waiting_for) == ("Pending", "butane to convert the Ignition")
    go.touch()
    assert (await _until_ignition_is(site, "Valid")).status.state == "Ready"
    go.unlink()
    await site.secret({}, format=b"fcos")
    await asyncio.sleep(20)  # no thread works yet, so that this takes no time
    assert (await _until_ignition_is(site, "Converting")).status.state == "Ready"
    go.touch()


async def _until_ignition_is(site: Site, reason: str) -> ServerBootConfiguration:
    while True:
        config = await site.api.get(site.kinds.boot_config, "sbc", "ns")
        found = find(config.status.conditions, "IgnitionValidation")
        if found is not None and found.reason == reason:
            return config
        await asyncio.sleep(0.05)


async def test_a_secret_that_becomes_invalid_takes_readiness_away(site: Site) -> None:
    """It is noticed within the poll interval; the boot server then answers 503."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    await site.secret({"ignition": {}})
    await asyncio.sleep(60)
    assert (await site.config()).status.state == "Error"
    assert (await site.child()).status.state == "Error"
    await site.world.open("Claim")
    await site.world.lease("10.0.0.7", "52:54:00:00:00:01")
    assert (await site.world.boot.script(UUID, "10.0.0.7")).status == 503


async def test_a_lasting_image_error_is_an_error_that_is_looked_at_slowly(site: Site) -> None:
    """ImageValidation is False with reason ValidationFailed, and an Event is recorded."""
    site.world.images.failure = ImageError("ImageNotFound", "the registry does not have it")
    await site.server()
    await site.secret()
    await site.configure()
    config = await site.config()
    assert config.status.state == "Error"
    assert await site.condition("ImageValidation") == (
        "False", "ValidationFailed", "ImageNotFound: the registry does not have it",
    )  # fmt: skip
    await asyncio.sleep(200)
    assert len(site.world.images.resolved) == 1
    site.world.images.failure = None
    await asyncio.sleep(200)
    assert (await site.config()).status.state == "Ready"
    events = [obj for (plural, _, _), obj in site.api.objects.items() if plural == "events"]
    assert [event["reason"] for event in events] == ["ValidationFailed", "Ready"]


async def test_a_registry_that_stumbles_is_asked_again_with_growing_pauses(site: Site) -> None:
    """The state is Pending with the reason, never Error."""
    site.world.images.failure = ImageError("RegistryTimeout", "no answer in time", transient=True)
    await site.server()
    await site.secret()
    await site.configure()
    config = await site.config()
    assert (config.status.state, config.status.waiting_for) == ("Pending", "no answer in time")
    await asyncio.sleep(120)
    assert 3 <= len(site.world.images.resolved) <= 5
    site.world.images.failure = None
    await asyncio.sleep(300)
    assert (await site.config()).status.state == "Ready"


async def test_a_download_shows_its_progress_and_holds_nobody_up(site: Site) -> None:
    """waitingFor shows the progress; the end of the download causes a pass."""
    big = image()
    blob = big.parts.kernel
    parts = type(big.parts)(type(blob)(blob.media_type, blob.digest, 180 * 1024 * 1024), big.parts.initramfs)
    site.world.images.found, site.world.images.local = Image(big.pinned, parts), False
    await site.server()
    await site.secret()
    await site.configure()
    config = await site.config()
    assert (config.status.state, config.status.waiting_for) == ("Pending", "downloading 60 of 181 MiB")
    assert (await site.condition("ImageValidation"))[:2] == ("Unknown", "Downloading")
    assert len(site.world.images.resolved) == 1
    site.world.images.local = True
    for wake in site.world.images.wakers:
        wake()
    assert (await site.config()).status.state == "Ready"
    assert len(site.world.images.resolved) == 1


@pytest.mark.parametrize("reason", ["SignatureMissing", "SignatureInvalid"])
@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "An image that is not signed as `registries.keys` requires is an error with the reason `SignatureMissing` or "
    "`SignatureInvalid`.",
)
async def test_an_image_that_is_not_signed_is_a_condition_with_its_own_reason(site: Site, reason: str) -> None:
    """It is not retried quickly; once it is signed the configuration becomes Ready without any change."""
    site.world.images.failure = ImageError(reason, "registry.test/os is not signed")
    await site.server()
    await site.secret()
    await site.configure()
    assert (await site.config()).status.state == "Error"
    assert await site.condition("ImageValidation") == ("False", reason, "registry.test/os is not signed")
    tried = len(site.world.images.resolved)
    await asyncio.sleep(200)
    assert len(site.world.images.resolved) == tried
    site.world.images.failure = None
    await asyncio.sleep(200)
    assert (await site.config()).status.state == "Ready"


async def test_a_silent_registry_holds_up_no_other_configuration(site: Site) -> None:
    """With more unanswered lookups than workers, another configuration is ready at once."""

    async def resolve(reference: str, architecture: str, *, pinned: bool = False) -> Image:
        if "silent" in reference:
            await asyncio.sleep(30)
        return image()

    site.world.images.resolve = resolve  # type: ignore[method-assign]  # this registry is slow for some
    await site.server()
    await site.secret()
    for number in range(60):
        spec = {"serverRef": {"name": "s1"}, "image": f"silent/{number}"}
        meta = {"name": f"other-{number}", "namespace": "ns", "generation": 1}
        await site.api.create(site.kinds.boot_config, {"metadata": meta, "spec": spec})
    await asyncio.sleep(1)
    await site.configure()
    assert (await site.config()).status.state == "Ready"
    other = await site.api.get(site.kinds.boot_config, "other-7", "ns")
    assert (other.status.state, other.status.conditions[0].reason) == ("Pending", "Resolving")
    await asyncio.sleep(31)
    other = await site.api.get(site.kinds.boot_config, "other-7", "ns")
    assert other.status.state == "Ready"


async def test_a_tag_that_moves_changes_nothing_until_the_configuration_does(site: Site) -> None:
    """The digest is pinned for a generation, also across restarts; a new generation resolves the tag again."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    moved = image("other arguments")
    site.world.images.found = Image(IMAGE.pinned("sha256:" + "00" * 32), moved.parts, moved.command_line)
    await asyncio.sleep(600)
    assert IMAGE.digest.replace(":", "%3A") in (await site.child()).spec.kernel_url
    again = Site(site.world)
    await again.runtime.start()
    await asyncio.sleep(60)
    await again.runtime.stop()
    assert IMAGE.digest.replace(":", "%3A") in (await site.child()).spec.kernel_url
    await site.change(2, ignitionSecretRef={"name": "ignition"})
    assert (await site.config()).status.observed_generation == 2
    assert "00000000" in (await site.child()).spec.kernel_url


async def test_another_image_changes_the_urls(site: Site) -> None:
    """The former blobs are no longer kept."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    other = Image(IMAGE.pinned("sha256:" + "11" * 32), image().parts, "other=1")
    site.world.images.found = other
    await site.change(2, image="registry.test:5000/team/os:2")
    config = await site.config()
    assert (config.status.state, config.status.observed_generation) == ("Ready", 2)
    assert site.world.images.resolved == [REFERENCE, "registry.test:5000/team/os:2"]
    assert (await site.child()).spec.image == "registry.test:5000/team/os:2"


async def test_images_are_resolved_for_the_architecture_of_the_server(site: Site) -> None:
    """What the inventory says; without it the default of the site, and the label of the Server before both."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    await site.api.patch_status(site.kinds.server, "s1", {"status": {"architecture": "arm64"}})
    assert (await site.config()).status.state == "Ready"
    key = site.kinds.key("architecture")
    await site.api.patch(site.kinds.server, "s1", {"metadata": {"labels": {key: "riscv64"}}})
    assert (await site.config()).status.state == "Ready"
    assert site.world.images.architectures == ["amd64", "arm64", "riscv64"]
    assert site.world.images.pinned == [False] * 3
    assert (await site.child()).metadata.annotations["boot.ironcore.dev/architecture"] == "riscv64"


async def test_a_former_version_pinned_the_image_for_amd64(site: Site) -> None:
    """After an upgrade the image stays as it was resolved, unless the server has another architecture."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    drop = {"metadata": {"annotations": {"boot.ironcore.dev/architecture": None}}}
    await site.api.patch(site.kinds.ipxe, "sbc", drop, "ns")
    await site.config()
    assert (await site.child()).metadata.annotations["boot.ironcore.dev/architecture"] == "amd64"
    assert len(site.world.images.resolved) == 1


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "An image without a part for the architecture of its Server is an error that names both, and the way out.",
)
@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"architecture": "arm64"},
            "The architecture of Server s1 is arm64: use an image for it, or correct the label",
        ),
        ({}, "The architecture of Server s1 is amd64 by boot.defaultArchitecture, since its inventory names none:"),
    ],
)
async def test_an_image_for_another_architecture_is_an_error(site: Site, said: dict[str, str], why: str) -> None:
    """It says whether the architecture is only assumed, and is looked at again when the Server's is corrected."""
    site.world.images.failure = ImageError("ArchitectureMissing", "the image has no part for it; it offers s390x")
    await site.server()
    await site.api.patch_status(site.kinds.server, "s1", {"status": said})
    await site.secret()
    await site.configure()
    status, reason, message = await site.condition("ImageValidation")
    assert (status, reason) == ("False", "ValidationFailed")
    assert message.startswith(f"ArchitectureMissing: the image has no part for it; it offers s390x. {why}")
    site.world.images.failure = None
    label = {"metadata": {"labels": {site.kinds.key("architecture"): "s390x"}}}
    await site.api.patch(site.kinds.server, "s1", label)
    assert (await site.config()).status.state == "Ready"


@pytest.mark.parametrize("line", ["${evil}", "a\nb", "x" * 3000])
async def test_an_image_that_no_script_can_boot_is_an_error(site: Site, line: str) -> None:
    """Its command line would break the iPXE script, or be truncated by the kernel."""
    site.world.images.found = image(line)
    await site.server()
    await site.secret()
    await site.configure()
    assert (await site.config()).status.state == "Error"
    assert "cannot be booted by iPXE" in (await site.condition("ImageValidation"))[2]


async def test_an_empty_image_is_an_error_that_says_what_to_do(site: Site) -> None:
    """No lookup is started."""
    await site.server()
    await site.configure(image="", ignition="")
    assert "spec.image is empty" in (await site.config()).status.waiting_for
    assert site.world.images.resolved == []


async def test_a_child_that_somebody_deletes_or_edits_comes_back(site: Site) -> None:
    """The IPXEBootConfig follows from the configuration alone."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    wanted = (await site.child()).spec
    await site.api.patch(site.kinds.ipxe, "sbc", {"spec": {"kernelURL": "http://evil.test/k"}}, "ns")
    await site.config()
    assert (await site.child()).spec == wanted
    await site.api.delete(site.kinds.ipxe, "sbc", "ns")
    await site.config()
    assert (await site.child()).spec == wanted


@pytest.mark.parametrize("again", [False, True])
async def test_a_configuration_that_only_the_cache_still_has_gets_no_child(
    again: bool, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child of an owner that was deleted, or created again, would be garbage-collected and created repeatedly."""
    await site.server()
    await site.secret()
    await site.configure()
    config, get = await site.config(), site.api.get

    async def behind(kind: Kind[Any], name: str, namespace: str = "") -> Any:
        if kind is site.kinds.boot_config and again:
            return msgspec.structs.replace(config, metadata=msgspec.structs.replace(config.metadata, uid="another"))
        if kind is site.kinds.boot_config:
            raise NotFound(f"{name} not found")
        return await get(kind, name, namespace)

    with monkeypatch.context() as patch:
        patch.setattr(site.api, "get", behind)
        await site.api.delete(site.kinds.ipxe, "sbc", "ns")
        await asyncio.sleep(60)
        left = (await site.api.list(site.kinds.ipxe)).items
    await asyncio.sleep(120)
    assert left == ()
    assert (await site.child()).status.state == "Ready"


async def test_a_deleted_configuration_keeps_no_image(site: Site) -> None:
    """Its blobs may be evicted."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    assert list(site.world.images.held) == ["ns/sbc"]
    await site.api.delete(site.kinds.boot_config, "sbc", "ns")
    await asyncio.sleep(1)
    assert site.world.images.held == {}


async def test_what_the_machine_fetched_is_told_in_conditions(site: Site) -> None:
    """They follow the boot window."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    await site.world.open("Claim", scriptServedAt="2026-01-01T12:00:05Z")
    await asyncio.sleep(60)
    assert (await site.condition("IPXEScriptFetched"))[:2] == ("True", "IPXEScriptDelivered")
    assert find((await site.config()).status.conditions, "IgnitionDataFetched") is None


async def test_conditions_of_others_stay(site: Site) -> None:
    """The registry writes BootStateReceived."""
    await site.server()
    await site.secret()
    await site.configure()
    await site.config()
    config = await site.config()
    mine = msgspec.to_builtins(config.status.conditions)
    other = {"type": "BootStateReceived", "status": "True", "reason": "X", "message": ""}
    body = {"status": {"conditions": [*mine, other]}}
    await site.api.patch_status(site.kinds.boot_config, "sbc", body, "ns")
    await site.change(2)
    await site.config()
    assert (await site.condition("BootStateReceived"))[0] == "True"


@pytest.mark.parametrize("silent", [False, True])
async def test_a_new_leader_with_an_empty_cache_takes_no_readiness_back(silent: bool, site: Site) -> None:
    """A machine may be booting, and each replica serves the pinned image: it stays Ready during the download."""
    await site.server()
    await site.secret()
    await site.configure()
    before = await site.config()
    await site.runtime.stop()
    site.world.images.local = False

    async def never(reference: str, architecture: str, *, pinned: bool = False) -> Image:
        await asyncio.sleep(10_000)
        return image()

    if silent:
        site.world.images.resolve = never  # type: ignore[method-assign]  # this registry is slow
    successor = Site(site.world)
    await successor.runtime.start()
    await asyncio.sleep(20)
    await successor.runtime.stop()
    assert before.status.state == "Ready"
    assert (await site.config()).metadata.resource_version == before.metadata.resource_version
    assert (await site.child()).status.state == "Ready"


@pytest.mark.behaviour(
    "ServerBootConfiguration",
    "A request that the API refuses is reported in the condition Reconciled, beside what the pass found.",
)
async def test_a_refused_ipxe_boot_config_is_reported(site: Site) -> None:
    """Image and Ignition are reported, the state is Pending, and both go on when the API accepts the request."""
    site.api.faults.before = _refuse_apply
    await site.server()
    await site.secret()
    await site.configure()
    config = await site.config()
    said = await site.condition("Reconciled")
    assert (config.status.state, config.status.observed_generation) == ("Pending", 0)
    assert (said[:2], "exceeded quota" in said[2]) == (("False", "Forbidden"), True)
    assert (await site.condition("ImageValidation"))[:2] == ("True", "Resolved")
    site.api.faults.before = lambda verb, plural, name: 0.0
    await asyncio.sleep(60)
    config = await site.config()
    assert (config.status.state, config.status.observed_generation, config.status.waiting_for) == ("Ready", 1, "")
    assert (await site.condition("Reconciled"))[0] == "True"


async def test_a_refusal_takes_no_readiness_back(site: Site) -> None:
    """The addresses of a Ready machine change and cannot be written: Ready as before, with Reconciled=False."""
    await site.server()
    await site.secret()
    await site.configure()
    assert (await site.config()).status.state == "Ready"
    site.api.faults.before = _refuse_apply
    await site.api.patch_status(site.kinds.server, "s1", {"status": {"networkInterfaces": []}})
    config = await site.config()
    assert (config.status.state, config.status.waiting_for) == ("Ready", "")
    assert (await site.condition("Reconciled"))[0] == "False"


def _refuse_apply(verb: str, plural: str, name: str) -> float:
    if verb in {"create", "patch"} and plural == "ipxebootconfigs":
        raise Forbidden("exceeded quota: ipxebootconfigs=1")
    return 0.0
