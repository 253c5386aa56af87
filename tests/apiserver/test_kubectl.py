"""The real kubectl, command by command."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.apiserver.kubectl import Cluster, cluster
from tests.apiserver.widgets import crd, widget

pytestmark = [pytest.mark.wire, pytest.mark.needs("kubectl")]


@pytest.fixture
async def k(tmp_path: Path) -> AsyncIterator[Cluster]:
    """An API that serves widgets."""
    async with cluster(tmp_path) as found:
        await found.api.install_crds([crd()])
        yield found


async def test_what_the_server_offers(k: Cluster) -> None:
    """version, api-resources and api-versions work."""
    assert "v1.35.4+metal" in (await k.run("version")).out  # other versions warn of the difference
    resources = (await k.ok("api-resources")).lines
    assert ["widgets", "wd", "example.org/v1", "true", "Widget"] in resources
    assert ["secrets", "v1", "true", "Secret"] in resources
    assert ["example.org/v1"] in (await k.ok("api-versions")).lines


async def test_get_prints_columns(k: Cluster) -> None:
    """Plain and wide tables show the CRD's columns; -A adds the namespace, -l and --field-selector choose."""
    await k.apply(widget("a", size=3), {**widget("b"), "metadata": {"name": "b", "labels": {"rack": "r1"}}})
    assert (await k.ok("get", "wd")).lines == [["NAME", "SIZE", "PHASE"], ["a", "3"], ["b"]]
    assert (await k.ok("get", "widgets", "-o", "wide")).lines[1] == ["a", "3", "plain"]
    assert (await k.ok("get", "wd", "-A")).lines[2] == ["default", "b"]
    assert (await k.ok("get", "wd", "-l", "rack=r1", "-o", "name")).out == "widget.example.org/b\n"
    assert (await k.ok("get", "wd", "--field-selector", "metadata.name=a", "--no-headers")).lines == [["a", "3"]]
    assert (await k.run("get", "wd", "-l", "rack=r9")).err == "No resources found in default namespace.\n"


async def test_get_prints_objects(k: Cluster) -> None:
    """yaml, json, jsonpath and sorting work on lists and single objects."""
    await k.apply(widget("a", size=3), widget("b", size=1))
    assert yaml.safe_load((await k.ok("get", "wd", "a", "-o", "yaml")).out)["spec"] == {"size": 3, "note": "plain"}
    assert len(json.loads((await k.ok("get", "wd", "-o", "json")).out)["items"]) == 2
    assert (await k.ok("get", "wd", "a", "-o", "jsonpath={.spec.size}")).out == "3"
    assert (await k.ok("get", "wd", "--sort-by", ".spec.size", "-o", "name")).out.split()[0].endswith("/b")
    raw = await k.ok("get", "--raw", "/apis/example.org/v1/namespaces/default/widgets/a")
    assert json.loads(raw.out)["metadata"]["name"] == "a"


async def test_long_lists_come_in_pages(k: Cluster) -> None:
    """kubectl follows the continue token."""
    await k.apply(*(widget(f"w{number}") for number in range(7)))
    assert len((await k.ok("get", "wd", "--chunk-size", "3", "-o", "name")).lines) == 7


async def test_get_watches(k: Cluster) -> None:
    """-w prints every change as it happens."""
    await k.apply(widget("a", size=1))
    process = await k.start("get", "wd", "-w", "--output-watch-events")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            assert (await process.stdout.readline()).split()[:2] == [b"EVENT", b"NAME"]
            assert (await process.stdout.readline()).split() == [b"ADDED", b"a", b"1"]
            await k.ok("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"size":2}}')
            assert (await process.stdout.readline()).split() == [b"MODIFIED", b"a", b"2"]
            await k.ok("delete", "wd", "a")
            assert (await process.stdout.readline()).split() == [b"DELETED", b"a", b"2"]
    finally:
        process.terminate()
        await process.communicate()


async def test_describe(k: Cluster) -> None:
    """describe shows the object and the Events about it."""
    await k.apply(widget("a", size=3))
    uid = (await k.ok("get", "wd", "a", "-o", "jsonpath={.metadata.uid}")).out
    about = {"apiVersion": "example.org/v1", "kind": "Widget", "name": "a", "namespace": "default", "uid": uid}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1"}, "involvedObject": about}
    await k.apply({**event, "reason": "Painted", "message": "It is red now.", "type": "Normal", "count": 1})
    described = (await k.ok("describe", "wd", "a")).out
    assert "Size:  3" in described
    assert "It is red now." in described
    assert "Painted" in (await k.ok("get", "events")).out
    assert "Painted" in (await k.ok("events", "--for", "widget/a")).out


async def test_client_side_apply(k: Cluster) -> None:
    """apply creates, changes, removes what was left out, and knows when nothing changed."""
    assert "created" in (await k.apply({**widget("a", size=1, note="x"), "metadata": {"name": "a"}})).out
    assert "unchanged" in (await k.apply(widget("a", size=1, note="x"))).out
    assert "configured" in (await k.apply(widget("a", size=2))).out
    assert (await k.ok("get", "wd", "a", "-o", "jsonpath={.spec}")).out == '{"note":"plain","size":2}'
    diff = await k.run("diff", "-f", "-", stdin=yaml.safe_dump(widget("a", size=3)))
    assert (diff.code, "+  size: 3" in diff.out) == (1, True)


async def test_client_side_apply_of_built_in_kinds(k: Cluster) -> None:
    """ConfigMaps, Secrets and namespaces are applied with strategic merge patches."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    await k.apply(config)
    assert "configured" in (await k.apply({**config, "data": {"a": "3"}})).out
    assert (await k.ok("get", "cm", "c", "-o", "jsonpath={.data}")).out == '{"a":"3"}'
    assert (await k.ok("get", "cm", "c", "--no-headers")).lines[0][:2] == ["c", "1"]


async def test_server_side_apply(k: Cluster) -> None:
    """Conflicts between managers are told by field and can be forced."""
    manifest = yaml.safe_dump(widget("a", size=1))
    first = await k.ok("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=manifest)
    assert "serverside-applied" in first.out
    changed = manifest.replace("size: 1", "size: 2")
    clash = await k.run("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=changed)
    assert clash.code == 1
    assert 'conflict with "one": .spec.size' in clash.err
    forced = ("apply", "--server-side", "--force-conflicts", "--field-manager=two", "-f", "-")
    await k.ok(*forced, stdin=changed)
    assert (await k.ok("get", "wd", "a", "-o", "jsonpath={.spec.size}")).out == "2"


async def test_bad_manifests_are_refused_in_words(k: Cluster) -> None:
    """Unknown fields, broken rules and unknown kinds are told as on any cluster."""
    unknown = await k.run("apply", "-f", "-", stdin=yaml.safe_dump(widget("a", colour="red")))
    assert unknown.code == 1
    assert 'unknown field "spec.colour"' in unknown.err
    broken = await k.run("apply", "-f", "-", stdin=yaml.safe_dump(widget("a", size=-1)))
    assert 'The Widget "a" is invalid: spec.size: Invalid value: -1' in broken.err
    warned = await k.run("apply", "--validate=warn", "-f", "-", stdin=yaml.safe_dump(widget("a", colour="red")))
    assert warned.code == 0
    assert 'Warning: unknown field "spec.colour"' in warned.err
    assert "doesn't have a resource type" in (await k.run("get", "gizmos")).err
    assert 'widgets.example.org "zz" not found' in (await k.run("get", "wd", "zz")).err


async def test_edit(k: Cluster, tmp_path: Path) -> None:
    """edit stores what the editor left; an edit that breaks a rule changes nothing."""
    await k.apply(widget("a", size=1))
    for number, expected in ((5, "5"), (-5, "5")):
        editor = tmp_path / "editor"
        editor.write_text(f'#!/bin/sh\nsed -i "s/size: .*/size: {number}/" "$1"\n')
        editor.chmod(0o755)
        result = await k.run("edit", "wd", "a", EDITOR=str(editor))
        assert (result.code == 0) is (number > 0), result
        assert (await k.ok("get", "wd", "a", "-o", "jsonpath={.spec.size}")).out == expected


async def test_patch_label_annotate(k: Cluster) -> None:
    """Merge and JSON patches, the status subresource, labels and annotations."""
    await k.apply(widget("a", size=1))
    await k.ok("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"size":2}}')
    await k.ok("patch", "wd", "a", "--type=json", "-p", '[{"op":"replace","path":"/spec/note","value":"n"}]')
    await k.ok("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    assert (await k.ok("get", "wd", "--no-headers", "-o", "wide")).lines == [["a", "2", "n", "Up"]]
    await k.ok("label", "wd", "a", "rack=r1")
    assert "--overwrite is false" in (await k.run("label", "wd", "a", "rack=r2")).err
    await k.ok("label", "wd", "a", "rack=r2", "--overwrite")
    await k.ok("annotate", "wd", "a", "why=test")
    await k.ok("label", "wd", "a", "rack-")
    meta = json.loads((await k.ok("get", "wd", "a", "-o", "json")).out)["metadata"]
    assert "labels" not in meta
    assert meta["annotations"]["why"] == "test"
    strategic = await k.run("patch", "wd", "a", "-p", '{"spec":{"size":3}}')
    assert "strategic-merge-patch+json is not supported" in strategic.err


async def test_delete_and_wait(k: Cluster) -> None:
    """delete waits for finalizers; wait sees conditions, fields and deletions."""
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await k.apply(held, widget("free"))
    assert 'widget.example.org "free" deleted' in (await k.ok("delete", "wd", "free")).out
    waiting = await k.start("wait", "--for=jsonpath={.status.phase}=Up", "wd/held", "--timeout=20s")
    await k.ok("patch", "wd", "held", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    assert "condition met" in (await waiting.communicate())[0].decode()
    deleting = await k.start("delete", "wd", "held", "--timeout=20s")
    await k.ok("wait", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=0", "wd/held", "--timeout=20s")
    await k.ok("patch", "wd", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert b"deleted" in (await deleting.communicate())[0]
    await k.apply(widget("x1"), widget("x2"))
    assert len((await k.ok("delete", "wd", "--all")).lines) == 2
    assert (await k.ok("delete", "wd", "zz", "--ignore-not-found")).out == ""


async def test_explain(k: Cluster) -> None:
    """explain reads the schema, down to a field and up to metadata."""
    assert "How big it is, in metres." in (await k.ok("explain", "widget.spec.size")).out
    assert "finalizers" in (await k.ok("explain", "wd", "--recursive")).out
    assert "stringData" in (await k.ok("explain", "secret")).out


async def test_built_in_kinds_are_created(k: Cluster) -> None:
    """create secret, configmap, namespace and serviceaccount, which kubectl may send as protobuf."""
    await k.ok("create", "secret", "generic", "s", "--from-literal=user=root", "--from-literal=password=x y")
    data = json.loads((await k.ok("get", "secret", "s", "-o", "json")).out)
    assert (data["data"], data["type"]) == ({"user": "cm9vdA==", "password": "eCB5"}, "Opaque")
    assert (await k.ok("get", "secret", "s", "--no-headers")).lines[0][:3] == ["s", "Opaque", "2"]
    await k.ok("create", "configmap", "c", "--from-literal=a=b")
    assert (await k.ok("get", "cm", "c", "-o", "jsonpath={.data.a}")).out == "b"
    await k.ok("create", "namespace", "lab")
    await k.ok("create", "serviceaccount", "bot", "-n", "lab")
    assert "Active" in (await k.ok("get", "ns", "lab")).out
    assert "already exists" in (await k.run("create", "namespace", "lab")).err
    await k.ok("delete", "namespace", "lab", "--timeout=20s")
    assert 'namespaces "lab" not found' in (await k.run("get", "ns", "lab")).err


async def test_who_am_i(k: Cluster) -> None:
    """auth whoami and auth can-i answer for the administrator."""
    assert "admin" in (await k.ok("auth", "whoami")).out
    assert (await k.ok("auth", "can-i", "delete", "widgets")).out == "yes\n"
    assert "*.*" in (await k.ok("auth", "can-i", "--list")).out


async def test_crds_come_and_go(k: Cluster) -> None:
    """A CRD is served as soon as apply returns, and is removed with its objects by delete."""
    await k.apply(crd("Gizmo", short="gz"))
    await k.ok("wait", "--for=condition=Established", "crd/gizmos.example.org", "--timeout=20s")
    await k.apply({**widget("g"), "kind": "Gizmo"})
    assert (await k.ok("get", "gz", "-o", "name")).out == "gizmo.example.org/g\n"
    await k.ok("delete", "crd", "gizmos.example.org", "--timeout=20s")
    assert (await k.run("get", "gizmos")).code == 1
    assert "widgets.example.org" in (await k.ok("get", "crd")).out


async def test_a_wrong_token_is_told_nothing(k: Cluster) -> None:
    """kubectl with another token is refused."""
    config = yaml.safe_load(k.api.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "wrong"}
    stranger = k.home / "stranger"
    stranger.write_text(yaml.safe_dump(config))
    result = await k.run("get", "secrets", "-A", "--kubeconfig", str(stranger))
    assert result.code == 1
    assert "You must be logged in to the server" in result.err
    assert result.out == ""
