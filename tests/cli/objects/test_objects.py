"""get, describe, apply and delete without kubectl."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from metal.api.core import CONFIG_MAP, NAMESPACE, SECRET
from tests.cli.inprocess import Bench
from tests.cli.inprocess import bench as fresh
from tests.cli.live import KINDS

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {when: 2026-01-01}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: other}
"""


@asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    """Start an API with a second namespace."""
    async with fresh(folder) as found:
        await found.live.client.create(NAMESPACE, {"metadata": {"name": "other"}})
        yield found


async def test_get_prints_the_columns_of_the_api(tmp_path: Path) -> None:
    """The columns are those of kubectl; wide has more; a kind is found by each of its names."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Available", powerState="Off", serialNumber="SN7")
        plain, wide = await b.run("get", "servers"), await b.run("get", "servers", "s1", "-o", "wide")
        for word in ("srv", "Server", "server.metal.ironcore.dev"):
            assert _ageless((await b.run("get", word)).out) == _ageless(plain.out)
        header, row = plain.out.splitlines()
    assert header.split()[:3] == ["NAME", "SYSTEMUUID", "MANUFACTURER"]
    assert row.split()[0] == "s1"
    assert header.index("POWERSTATE") == row.index("Off")
    assert "SN7" in wide.out
    assert "SN7" not in plain.out


def _ageless(table: str) -> list[str]:
    return re.sub(r"\b\d+s\b", "", table).split()


async def test_a_category_shows_every_kind_that_has_objects(tmp_path: Path) -> None:
    """Names have a prefix with their kind; with -A there is a column with the namespace."""
    async with bench(tmp_path) as b:
        await b.server("s1")
        await b.claim("c1")
        found = await b.run("get", "metal", "-A")
        assert found.code == 0
        first, second = sorted(found.out.split("\n\n"), key=lambda block: block.startswith("NAMESPACE"))
        assert "server.metal.ironcore.dev/s1" in first
        assert second.splitlines()[1].split()[:2] == ["default", "serverclaim.metal.ironcore.dev/c1"]


async def test_get_shows_how_far_an_erasure_is(tmp_path: Path) -> None:
    """The wait has the progress in words; -o wide has columns for percentage and remaining time."""
    progress = {"percent": 41, "timeLeft": "2h10m", "message": "0 of 2 drives erased, about 2h10m left"}
    waiting = f"the drives to be erased: 41 %, {progress['message']}"
    async with bench(tmp_path) as b:
        await b.server("s1", state="Cleanup", sanitizationProgress=progress, waitingFor=waiting)
        plain, wide = await b.run("get", "servers"), await b.run("get", "servers", "-o", "wide")
    assert waiting in plain.out
    assert "ERASED" not in plain.out
    header, row = wide.out.splitlines()
    assert [row[header.index(f" {name}") :].split()[0] for name in ("STATE", "ERASED", "TIME-LEFT")] == [
        "Cleanup", "41", "2h10m",
    ]  # fmt: skip


async def test_objects_come_as_json_yaml_and_names(tmp_path: Path) -> None:
    """One object is printed alone, several as a List, without managedFields."""
    async with bench(tmp_path) as b:
        await b.server("s1")
        await b.server("s2")
        one = (await b.run("get", "server/s1", "-o", "json")).json
        assert (one["kind"], one["metadata"]["name"]) == ("Server", "s1")
        assert "managedFields" not in one["metadata"]
        listed = yaml.safe_load((await b.run("get", "srv", "-o", "yaml")).out)
        assert [item["kind"] for item in listed["items"]] == ["Server", "Server"]
        names = await b.run("get", "server/s1", "srv/s2", "-o", "name")
        assert names.out == "server.metal.ironcore.dev/s1\nserver.metal.ironcore.dev/s2\n"


async def test_missing_names_and_kinds_have_exit_code_3(tmp_path: Path) -> None:
    """A missing name or kind is exit code 3 with a hint; an empty list is no error."""
    async with bench(tmp_path) as b:
        missing, unknown, nothing = (
            await b.run("get", "servers", "nope"),
            await b.run("get", "serfers"),
            await b.run("get", "scl", "-n", "empty"),
        )
    assert (missing.code, missing.err) == (3, "Error: servers nope not found\n")
    assert unknown.code == 3
    assert "did you mean servers" in unknown.err
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no serverclaims found in namespace empty\n")


async def test_labels_select(tmp_path: Path) -> None:
    """Selectors have kubectl's syntax; with names they are a usage error."""
    async with bench(tmp_path) as b:
        for name, rack in (("s1", "r1"), ("s2", "r2")):
            await b.server(name)
            await b.live.client.patch(KINDS.server, name, {"metadata": {"labels": {"rack": rack}}})
        assert (await b.run("get", "srv", "-l", "rack in (r2,r3)", "-o", "name")).out.endswith("/s2\n")
        assert (await b.run("get", "srv", "s1", "-l", "rack=r1")).code == 2


async def test_a_watch_prints_each_change(tmp_path: Path) -> None:
    """The current objects are printed, then a row for each change; Ctrl-C ends the watch with 0."""
    async with bench(tmp_path) as b:
        await b.server("s1", state="Initial")
        process = await b.live.process("get", "srv", "-w")
        try:
            assert process.stdout is not None
            lines = [await asyncio.wait_for(process.stdout.readline(), 10) for _ in range(2)]
            await b.live.client.patch_status(KINDS.server, "s1", {"status": {"state": "Discovery"}})
            lines.append(await asyncio.wait_for(process.stdout.readline(), 10))
            process.send_signal(signal.SIGINT)
            assert await asyncio.wait_for(process.wait(), 10) == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
    assert [line.split()[0] for line in lines] == [b"NAME", b"s1", b"s1"]
    assert (b"Initial" in lines[1], b"Discovery" in lines[2]) == (True, True)


async def test_describe_shows_conditions_and_events_and_hides_secrets(tmp_path: Path) -> None:
    """Events are shown with the object; of a Secret only the length of each value."""
    async with bench(tmp_path) as b:
        condition = {
            "type": "Ready", "status": "False", "reason": "PowerOn", "message": "power On (boot)",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        await b.server("s1", state="Discovery", conditions=[condition])
        await b.event("s1", "ForcedOff", "power is cut")
        secret = {"metadata": {"name": "pw", "namespace": "default"}, "stringData": {"password": "hunter2-hunter2"}}
        await b.live.client.create(SECRET, secret)
        shown, hidden = await b.run("describe", "server/s1"), await b.run("describe", "secret", "pw")
    assert "Ready   False" in shown.out
    assert "state: Discovery" in shown.out
    assert "ForcedOff   power is cut" in shown.out
    assert "hunter2" not in hidden.out
    assert "aHVudGVyMi" not in hidden.out
    assert "password: (20 characters, hidden)" in hidden.out


async def test_apply_prints_the_result_for_each_object(tmp_path: Path) -> None:
    """Each object is created, unchanged or configured; files can have several documents; timestamps stay text."""
    async with bench(tmp_path) as b:
        created = await b.run("apply", "-f", "-", stdin=CONFIG)
        assert created.out == "configmap/one created\nconfigmap/two created\n", created.err
        assert (await b.live.client.get(CONFIG_MAP, "one", "default")).data == {"when": "2026-01-01"}
        file = tmp_path / "two.yaml"
        file.write_text(CONFIG.replace("2026", "2027"))
        dry = await b.run("apply", "-f", str(file), "--dry-run")
        assert dry.out == "configmap/one configured (dry run)\nconfigmap/two unchanged (dry run)\n"
        assert (await b.live.client.get(CONFIG_MAP, "one", "default")).data == {"when": "2026-01-01"}
        assert (await b.run("apply", "-f", str(file))).out == "configmap/one configured\nconfigmap/two unchanged\n"


async def test_apply_refuses_with_the_place_and_the_field(tmp_path: Path) -> None:
    """Invalid files are usage errors; an error of the API server names file and document."""
    async with bench(tmp_path) as b:
        broken = await b.run("apply", "-f", "-", stdin="kind: ConfigMap\nmetadata: {name: x}\n")
        wrong = await b.run("apply", "-f", "-", stdin=CONFIG.replace("\ndata:", "\ndada:"))
        foreign = await b.run("apply", "-f", "-", stdin="{apiVersion: v9, kind: Thing, metadata: {name: x}}")
        garbled = await b.run("apply", "-f", "-", stdin="a: [")
    assert (broken.code, "apiVersion is missing" in broken.err) == (2, True)
    assert (wrong.code, "ConfigMap one (standard input document 1)" in wrong.err, "dada" in wrong.err) == (
        1,
        True,
        True,
    )
    assert (foreign.code, "no kind Thing in v9" in foreign.err) == (3, True)
    assert (garbled.code, "not YAML" in garbled.err) == (2, True)


async def test_a_file_can_have_a_crd_and_its_objects(tmp_path: Path) -> None:
    """A file can have a CRD and objects of its kind."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    file = yaml.safe_dump_all([
        {**crd, "metadata": {"name": "things.example.com"}},
        {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}},
    ])  # fmt: skip
    async with bench(tmp_path) as b:
        done = await b.run("apply", "-f", "-", stdin=file)
        assert (done.code, done.out.splitlines()[-1]) == (0, "thing.example.com/t created"), done.err
        assert (await b.run("get", "things", "-o", "name")).out == "thing.example.com/t\n"


async def test_fields_of_other_managers_need_force_conflicts(tmp_path: Path) -> None:
    """A conflict names the owner of the field and --force-conflicts."""
    async with bench(tmp_path) as b:
        await b.run("apply", "-f", "-", stdin=CONFIG)
        mine = {"metadata": {"name": "one", "namespace": "default"}, "data": {"when": "never"}}
        await b.live.client.apply(CONFIG_MAP, mine, manager="somebody")
        refused = await b.run("apply", "-f", "-", stdin=CONFIG)
        assert (refused.code, "somebody" in refused.err, "--force-conflicts" in refused.err) == (1, True, True)
        assert (await b.run("apply", "-f", "-", "--force-conflicts", stdin=CONFIG)).code == 0


async def test_delete_takes_names_and_files(tmp_path: Path) -> None:
    """With --wait it ends when the objects no longer exist; every failure is printed."""
    async with bench(tmp_path) as b:
        await b.run("apply", "-f", "-", stdin=CONFIG)
        assert (await b.run("delete", "configmap/one", "--wait")).out == "configmap/one deleted\n"
        some = await b.run("delete", "-f", "-", stdin=CONFIG)
        assert (some.code, some.out) == (3, "configmap/two in other deleted\n")
        assert some.err == "Error: configmaps one not found\n"
        both = await b.run("delete", "configmaps", "x", "y")
        assert (both.code, both.err.count("not found")) == (3, 2)
        assert (await b.run("delete", "-f", "-", "--ignore-not-found", stdin=CONFIG)).code == 0


async def test_a_deletion_with_a_finalizer_times_out(tmp_path: Path) -> None:
    """A finalizer makes --wait end with exit code 4 and its name."""
    async with bench(tmp_path) as b:
        held = {"metadata": {"name": "held", "namespace": "default", "finalizers": ["example.com/hold"]}}
        await b.live.client.create(CONFIG_MAP, held)
        late = await b.run("delete", "configmap", "held", "--wait", "--timeout", "1s")
    assert late.code == 4
    assert "configmap/held: waiting for its deletion (finalizers example.com/hold)" in late.err
    assert "not completed within 1s" in late.err
