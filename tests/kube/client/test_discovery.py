"""Kinds that are known by apiVersion and kind only: found over HTTP, remembered, and looked for again."""

import pytest

from metal.kube.client.discovery import Discovery
from metal.kube.client.errors import Malformed, NotFound
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import Connection
from metal.kube.client.resources import Resource
from tests.kube.client.wireserver import json, serving, status
from tests.kube.things import Thing

RECORDS = {"name": "records", "singularName": "", "namespaced": True, "kind": "Record", "verbs": ["get", "patch"]}
PART = {"name": "records/status", "singularName": "", "namespaced": True, "kind": "Record", "verbs": ["get"]}
LIST = {"kind": "APIResourceList", "groupVersion": "dns.example/v1", "resources": [RECORDS, PART]}


async def test_a_kind_is_found_in_its_group_and_version_without_its_subresources() -> None:
    """One request to /apis/GROUP/VERSION, /api/v1 for the core group; the singular is the kind where none is given."""
    async with serving(json(LIST), json({"resources": [PART]})) as server, HTTPClient(Connection(server.url)) as api:
        found = await api.resources("dns.example/v1")
        none = await api.resources("v1")

    assert found == (
        Resource("dns.example", "v1", "Record", "records", "record", namespaced=True, verbs=("get", "patch")),
    )
    assert none == ()
    assert [seen.path for seen in server.seen] == ["/apis/dns.example/v1", "/api/v1"]


async def test_what_was_found_is_not_asked_for_again_until_it_is_forgotten() -> None:
    """The struct is the caller's."""
    async with serving(json(LIST), json(LIST)) as server, HTTPClient(Connection(server.url)) as api:
        discovery = Discovery(api)
        first = await discovery.find("dns.example/v1", "Record", Thing)
        await discovery.find("dns.example/v1", "Record", Thing)
        asked_before = len(server.seen)
        discovery.forget("dns.example/v1", "Record")
        await discovery.find("dns.example/v1", "Record", Thing)

    assert (first.plural, first.struct) == ("records", Thing)
    assert (asked_before, len(server.seen)) == (1, 2)


async def test_a_kind_or_group_that_is_missing_is_not_found_and_not_remembered() -> None:
    """Its CRD may come later."""
    missing = status(404, "NotFound", "the server could not find the requested resource")
    async with serving(missing, json(LIST), json(LIST)) as server, HTTPClient(Connection(server.url)) as api:
        discovery = Discovery(api)
        with pytest.raises(NotFound):
            await discovery.find("dns.example/v1", "Record", Thing)
        with pytest.raises(NotFound, match="no kind Other"):
            await discovery.find("dns.example/v1", "Other", Thing)
        found = await discovery.find("dns.example/v1", "Record", Thing)

    assert found.full == "records.dns.example"


@pytest.mark.parametrize("answer", [{"kind": "APIResourceList"}, [], {"resources": [{"name": "x"}]}])
async def test_another_answer_than_a_list_of_kinds_is_malformed(answer: object) -> None:
    """Not a KeyError from deep inside."""
    async with serving(json(answer)) as server, HTTPClient(Connection(server.url)) as api:
        with pytest.raises(Malformed, match=r"the list of kinds of dns\.example/v1"):
            await api.resources("dns.example/v1")
