"""The HTTP front: who gets in, what is refused and how, forms of answers, watches over a socket."""

import asyncio
import io
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from metal.apiserver.server import EmbeddedAPI
from metal.kube.client.http import HTTPClient
from metal.kube.client.kubeconfig import from_file
from metal.kube.meta.clock import system_clock
from tests.apiserver.widgets import WIDGET, crd, widget

WIDGETS = "/apis/example.org/v1/namespaces/default/widgets"


class Web:
    """A listening API and a session that holds its token."""

    def __init__(self, api: EmbeddedAPI, session: aiohttp.ClientSession, token: str) -> None:
        self.api = api
        self.session = session
        self.token = token

    async def ask(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, aiohttp.ClientResponse]:
        """Status, decoded JSON (or text) and the response."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        data = None if raw is None else io.BytesIO(raw)
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        async with self.session.request(method, path, data=data, headers=sent) as response:
            text = await response.read()
            plain = response.content_type == "application/json"
            return response.status, json.loads(text) if plain else text.decode(errors="replace"), response


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    """An API that serves widgets, over TLS on the loopback."""
    api = EmbeddedAPI(tmp_path / "data", system_clock)
    await api.start()
    await api.install_crds([crd()])
    await api.listen("127.0.0.1", 0)
    connection = from_file(api.kubeconfig)
    assert connection.token is not None
    connector = aiohttp.TCPConnector(ssl=connection.tls or False)
    async with aiohttp.ClientSession(api.url, connector=connector) as session:
        yield Web(api, session, connection.token())
    await api.stop()


@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer \xff", "bearer x y", "Bearer {}x"])
async def test_wrong_tokens_get_nothing(web: Web, authorization: str) -> None:
    """An unknown token is answered 401 on every path, whether the path exists or not."""
    headers = {"Authorization": authorization.format(web.token)}
    for path in ("/", "/api", "/healthz", "/openapi/v3", WIDGETS, "/api/v1/secrets", "/nowhere"):
        code, body, response = await web.ask("GET", path, headers=headers)
        assert (code, body["reason"], body["message"]) == (401, "Unauthorized", "Unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Basic YWRtaW46YWRtaW4=", "bearer", "Token {}", "{}"])
async def test_strangers_get_nothing(web: Web, authorization: str) -> None:
    """A request without a bearer token is anonymous: every path but health and version answers 403."""
    headers = {"Authorization": authorization.format(web.token)}
    for path in ("/", "/api", "/apis", "/openapi/v3", WIDGETS, "/api/v1/secrets", "/nowhere", "/apis/no.such/v1/x"):
        code, body, _ = await web.ask("GET", path, headers=headers)
        assert (code, body["reason"]) == (403, "Forbidden")
        assert 'User "system:anonymous" cannot' in body["message"]


async def test_health_and_version_are_public(web: Web) -> None:
    """Probes need no token."""
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await web.ask("GET", path, headers={"Authorization": ""}))[:2] == (200, "ok")
    code, body, _ = await web.ask("GET", "/version", headers={"Authorization": ""})
    assert (code, body["gitVersion"]) == (200, "v1.35.4+metal")
    assert (await web.ask("DELETE", "/healthz"))[0] == 405


async def test_a_known_user_does_what_roles_allow(tmp_path: Path) -> None:
    """A user outside system:masters looks around as every user may, and nothing else."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text('t1,bob,1,"staff"\n')
    api = EmbeddedAPI(folder, system_clock)
    await api.start()
    await api.listen("127.0.0.1", 0)
    try:
        connector = aiohttp.TCPConnector(ssl=from_file(api.kubeconfig).tls or False)
        bob = {"Authorization": "Bearer t1"}
        async with aiohttp.ClientSession(api.url, connector=connector, headers=bob) as session:
            codes = {path: (await session.get(path)).status for path in ("/api", "/api/v1/secrets", "/snapshot")}
        assert codes == {"/api": 200, "/api/v1/secrets": 403, "/snapshot": 403}
    finally:
        await api.stop()


async def test_what_is_written_is_private(web: Web, tmp_path: Path) -> None:
    """Every file of the data folder has mode 0600, the folder 0700, and nothing but the token file holds the token."""
    folder = tmp_path / "data"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes) >= {"ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "tokens.csv", "kubeconfig", "state.db"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert web.token not in repr(web.api)


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/api/v1/gizmos", 404, "NotFound"),
        ("GET", f"{WIDGETS}/a", 404, "NotFound"),
        ("GET", f"{WIDGETS}/a/scale", 404, "NotFound"),
        ("GET", f"{WIDGETS}/a/b/c", 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/namespaces", 404, "NotFound"),
        ("POST", "/api", 405, "MethodNotAllowed"),
        ("PUT", WIDGETS, 400, "BadRequest"),
        ("POST", f"{WIDGETS}/a", 400, "BadRequest"),
        ("DELETE", f"{WIDGETS}/a/status", 405, "MethodNotAllowed"),
        ("TRACE", WIDGETS, 405, "MethodNotAllowed"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, "MethodNotAllowed"),
        ("GET", f"{WIDGETS}?limit=x", 400, "BadRequest"),
        ("GET", f"{WIDGETS}?continue=x", 400, "BadRequest"),
        ("GET", f"{WIDGETS}?resourceVersion=x", 400, "BadRequest"),
        ("GET", f"{WIDGETS}?resourceVersion=99999", 504, "Timeout"),
        ("GET", f"{WIDGETS}?watch=1&fieldSelector=spec.size=1", 400, "BadRequest"),
        ("GET", f"{WIDGETS}?watch=1&sendInitialEvents=1", 422, "Invalid"),
        ("POST", f"{WIDGETS}?dryRun=Some", 422, "Invalid"),
        ("POST", f"{WIDGETS}?fieldValidation=Loose", 422, "Invalid"),
        ("POST", f"{WIDGETS}?fieldManager={'x' * 200}", 422, "Invalid"),
        ("DELETE", f"{WIDGETS}/a?propagationPolicy=Slowly", 422, "Invalid"),
    ],
)
async def test_what_is_missing_answers_with_a_status(web: Web, method: str, path: str, code: int, reason: str) -> None:
    """Unknown resources, verbs and options are refused with a metav1.Status, never with a page or a traceback."""
    got, body, _ = await web.ask(method, path, {} if method in ("POST", "PUT") else None)
    assert (got, body["kind"], body["status"], body["reason"]) == (code, "Status", "Failure", reason)
    assert body["code"] == code


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/apis/nobody.org", "/apis/example.org/v1/gizmos", "/openapi/v4", "/openapi/v3/apis/nobody.org/v1"],
)
async def test_paths_outside_the_built_in_groups_answer_plain_text(web: Web, path: str) -> None:
    """As kube-apiserver does where nothing is served."""
    code, body, response = await web.ask("GET", path)
    assert (code, body, response.content_type) == (404, "404 page not found\n", "text/plain")


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"", 400),
        ("application/json", b"[1]", 400),
        ("application/json", b'"text"', 400),
        ("application/json", b"\xff\xfe", 400),
        ("application/json", b"[" * 40_000, 400),
        ("application/json", b'{"a":' * 200 + b"1" + b"}" * 200, 400),
        ("application/yaml", b"a: [", 400),
        ("application/yaml", b"a: &x [1]\nb: *x\n", 400),
        ("application/yaml", b"!!python/object/apply:os.system ['true']", 400),
        ("application/yaml", b"- 1", 400),
        ("application/yaml", b"[" * 200_000, 400),
        ("application/yaml", b"{a: " * 50_000, 400),
        ("application/yaml", b"- " * 100_000, 400),
        ("application/yaml", b"a: " + b"x" * (256 * 1024), 413),
        ("application/yaml", b"[" + b"1," * 60_000 + b"1]", 413),
        ("application/json", b"[" + b"1," * 60_000 + b"1]", 413),
        ("text/plain", b"{}", 415),
        ("application/xml", b"<a/>", 415),
        ("application/vnd.kubernetes.protobuf", b"nonsense", 400),
        ("application/vnd.kubernetes.protobuf", b"k8s\x00", 415),
        ("application/json", b" " * (3 * 1024 * 1024 + 1), 413),
    ],
)
async def test_bodies_that_cannot_be_read_are_refused(web: Web, content_type: str, body: bytes, code: int) -> None:
    """Garbage, depth, size, aliases and unsupported formats are answered with a Status; the server keeps serving."""
    got, answer, _ = await web.ask("POST", WIDGETS, body, headers={"Content-Type": content_type})
    assert (got, answer["kind"]) == (code, "Status")
    assert (await web.ask("GET", WIDGETS))[0] == 200


async def test_patches_of_unknown_kind_are_refused(web: Web) -> None:
    """PATCH needs one of the four media types; strategic merge is for built-in kinds only."""
    await web.ask("POST", WIDGETS, widget("a"))
    for kind in ("application/json", "application/strategic-merge-patch+json", "text/plain"):
        code, body, _ = await web.ask("PATCH", f"{WIDGETS}/a", {}, headers={"Content-Type": kind})
        assert (code, body["reason"]) == (415, "UnsupportedMediaType")


async def test_yaml_goes_in_and_out(web: Web) -> None:
    """A YAML body is read as Go reads it; Accept: application/yaml answers YAML."""
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {mac: 12:34:56, day: 2030-01-01}\n"
    headers = {"Content-Type": "application/yaml", "Accept": "application/yaml"}
    code, text, _ = await web.ask("POST", "/api/v1/namespaces/default/configmaps", body, headers=headers)
    assert code == 201
    assert yaml.safe_load(text)["data"] == {"mac": "12:34:56", "day": "2030-01-01"}


async def test_answers_come_in_the_form_that_was_asked_for(web: Web) -> None:
    """Tables, metadata alone, plain JSON as the fall-back, 406 when nothing fits."""
    await web.ask("POST", WIDGETS, widget("a", size=3))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    _, body, _ = await web.ask("GET", WIDGETS, headers={"Accept": table})
    assert (body["kind"], body["rows"][0]["cells"][:2]) == ("Table", ["a", 3])
    assert body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    _, body, _ = await web.ask("GET", f"{WIDGETS}/a?includeObject=Object", headers={"Accept": table})
    assert body["rows"][0]["object"]["spec"]["size"] == 3
    partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    _, body, _ = await web.ask("GET", WIDGETS, headers={"Accept": partial})
    assert (body["kind"], "spec" in body["items"][0]) == ("PartialObjectMetadataList", False)
    _, body, _ = await web.ask("GET", WIDGETS, headers={"Accept": "application/vnd.kubernetes.protobuf, */*;q=0.1"})
    assert body["kind"] == "WidgetList"
    for accept in ("application/vnd.kubernetes.protobuf", "text/html", "application/json;as=Poem"):
        code, body, _ = await web.ask("GET", WIDGETS, headers={"Accept": accept})
        assert (code, body["reason"]) == (406, "NotAcceptable")


async def test_warnings_travel_as_headers(web: Web) -> None:
    """Unknown fields come back as RFC 7234 warnings."""
    code, _, response = await web.ask("POST", WIDGETS, widget("a", colour="red"))
    assert code == 201
    assert response.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'


async def test_a_warning_about_a_strange_field_is_no_header_of_its_own(web: Web) -> None:
    """The warning is sent after the write, so it must arrive for any name and length of the field."""
    strange = {"a\r\nSet-Cookie: b": 1, "long" * 10_000: 1, "\x00": 1} | {f"f{number}": 1 for number in range(500)}
    body = widget("a")
    body["spec"] |= strange
    code, _, response = await web.ask("POST", WIDGETS, body)
    assert code == 201
    assert "Set-Cookie" not in response.headers
    warnings = response.headers.getall("Warning")
    assert warnings[0] == '299 - "unknown field \\"spec.\ufffd\\""'
    assert warnings[1] == '299 - "unknown field \\"spec.a\ufffd\ufffdSet-Cookie: b\\""'
    assert sum(map(len, warnings)) < 32_000


async def test_codes_tell_created_from_changed(web: Web) -> None:
    """201 for what is new, also by apply; 200 for what was there; a delete answers a Status with the uid."""
    apply = {"Content-Type": "application/apply-patch+yaml"}
    path = f"{WIDGETS}/a?fieldManager=m"
    code, made, _ = await web.ask("PATCH", path, widget("a", size=1), headers=apply)
    assert code == 201
    assert (await web.ask("PATCH", path, widget("a", size=2), headers=apply))[0] == 200
    code, body, _ = await web.ask("DELETE", f"{WIDGETS}/a", {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert (code, body["status"]) == (200, "Success")
    assert body["details"] == {
        "name": "a", "group": "example.org", "kind": "widgets", "uid": made["metadata"]["uid"],
    }  # fmt: skip


async def test_a_default_manager_is_the_program(web: Web) -> None:
    """Without fieldManager the first word of the User-Agent owns the fields."""
    _, body, _ = await web.ask("POST", WIDGETS, widget("a", size=1), headers={"User-Agent": "painter/1.0 (linux)"})
    assert body["metadata"]["managedFields"][0]["manager"] == "painter"


async def test_discovery_in_one_document(web: Web) -> None:
    """Aggregated discovery lists every group with its resources; the old form says the same."""
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    _, body, response = await web.ask("GET", "/apis", headers={"Accept": f"{form},application/json"})
    assert response.headers["Content-Type"] == form
    groups = {item["metadata"]["name"]: item for item in body["items"]}
    resource = groups["example.org"]["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["shortNames"]) == ("widgets", "Namespaced", ["wd"])
    assert resource["subresources"][0]["subresource"] == "status"
    _, body, _ = await web.ask("GET", "/apis")
    assert {group["name"] for group in body["groups"]} == set(groups)
    _, body, _ = await web.ask("GET", "/apis/example.org/v1")
    assert [entry["name"] for entry in body["resources"]] == ["widgets", "widgets/status"]
    _, body, _ = await web.ask("GET", "/api/v1")
    assert "secrets" in [entry["name"] for entry in body["resources"]]


async def test_openapi_follows_the_crds(web: Web) -> None:
    """/openapi/v3 lists each group version with a hash that changes with its content."""
    _, before, _ = await web.ask("GET", "/openapi/v3")
    path = before["paths"]["apis/example.org/v1"]["serverRelativeURL"]
    code, document, _ = await web.ask("GET", path)
    assert (code, document["openapi"]) == (200, "3.0.0")
    await web.api.install_crds([crd("Gizmo", short="gz")])
    _, after, _ = await web.ask("GET", "/openapi/v3")
    assert after["paths"]["apis/example.org/v1"] != before["paths"]["apis/example.org/v1"]
    assert after["paths"]["api/v1"] == before["paths"]["api/v1"]


async def test_old_kubectl_finds_the_options_of_patch(web: Web) -> None:
    """Up to 1.28 kubectl asks OpenAPI v2, in protobuf, whether PATCH takes fieldValidation and dryRun."""
    _, _, refused = await web.ask("GET", "/openapi/v2", headers={"Accept": "application/json"})
    assert refused.status == 406
    accept = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    code, text, response = await web.ask("GET", "/openapi/v2", headers=accept)
    assert code == 200
    assert response.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    for part in ("/apis/example.org/v1/namespaces/{namespace}/widgets/{name}", "fieldValidation", "dryRun"):
        assert part in text
    assert '{"group": "example.org", "kind": "Widget", "version": "v1"}' in text


async def lines(response: aiohttp.ClientResponse, count: int) -> list[Any]:
    """The next events of a watch."""
    return [json.loads(await response.content.readline()) for _ in range(count)]


async def test_a_watch_streams_lines(web: Web) -> None:
    """One JSON object a line; timeoutSeconds ends the stream; an old version is an ERROR event with 410."""
    version = web.api.backend.store.version
    headers = {"Authorization": f"Bearer {web.token}"}
    path = f"{WIDGETS}?watch=1&resourceVersion={version}&timeoutSeconds=2"
    async with web.session.get(path, headers=headers) as response:
        await web.ask("POST", WIDGETS, widget("a", note="line\nfeed \u0085"))
        first = (await lines(response, 1))[0]
        assert (first["type"], first["object"]["spec"]["note"]) == ("ADDED", "line\nfeed \u0085")
        assert await response.content.readline() == b""
    web.api.backend.store.hub.log(web.api.backend.resource("example.org", "v1", "widgets").key).floor = version
    async with web.session.get(f"{WIDGETS}?watch=true&resourceVersion=1", headers=headers) as response:
        assert response.status == 200
        error = (await lines(response, 1))[0]
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


@pytest.mark.behaviour("Limits", "A watcher that reads more slowly than objects change gets 410, and costs no memory.")
async def test_a_watcher_that_is_too_slow_is_told_so(web: Web) -> None:
    """While it reads nothing, only the history is kept; then it reads what was sent, and an ERROR event with 410."""
    log = web.api.backend.store.hub.log(web.api.backend.resource("example.org", "v1", "widgets").key)
    log._limit = 20
    headers = {"Authorization": f"Bearer {web.token}"}
    await web.ask("POST", WIDGETS, widget("a"))
    async with web.session.get(f"{WIDGETS}?watch=1&timeoutSeconds=300", headers=headers) as response:
        await lines(response, 1)
        assert response.connection is not None
        assert response.connection.transport is not None
        response.connection.transport.pause_reading()
        for number in range(150):
            await web.api.client().patch(WIDGET, "a", {"spec": {"note": f"{number}" + "x" * 200_000}}, "default")
            await asyncio.sleep(0)
        assert len(log.read(log._dropped)) <= 25
        response.connection.transport.resume_reading()
        seen = [json.loads(line) for line in (await response.content.read()).splitlines()]
    assert [event["type"] for event in seen][-2:] == ["MODIFIED", "ERROR"]
    assert (seen[-1]["object"]["code"], seen[-1]["object"]["reason"]) == (410, "Expired")
    assert "slower than the changes" in seen[-1]["object"]["message"]
    assert len(seen) < 100


async def test_a_watch_of_tables_sends_its_headers_once(web: Web) -> None:
    """kubectl get -w reads tables; only the first carries column definitions."""
    await web.ask("POST", WIDGETS, widget("a"))
    await web.ask("POST", WIDGETS, widget("b"))
    headers = {"Authorization": f"Bearer {web.token}", "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with web.session.get(f"{WIDGETS}?watch=1", headers=headers) as response:
        one, two = await lines(response, 2)
    assert (one["object"]["kind"], len(one["object"]["columnDefinitions"]) > 1) == ("Table", True)
    assert two["object"]["columnDefinitions"] in (None, [])


async def test_stopping_ends_open_watches_quickly(tmp_path: Path) -> None:
    """With fifty watches open, stop takes less than two seconds, and every stream ends."""
    api = EmbeddedAPI(tmp_path / "data", system_clock)
    await api.start()
    await api.install_crds([crd()])
    await api.listen("127.0.0.1", 0)
    connection = from_file(api.kubeconfig)
    client = HTTPClient(connection)
    version = (await client.list(WIDGET)).resource_version

    async def follow() -> int:
        return len([event async for event in client.watch(WIDGET, resource_version=version)])

    watches = [asyncio.ensure_future(follow()) for _ in range(50)]
    await asyncio.sleep(1)
    begun = asyncio.get_running_loop().time()
    await api.stop()
    assert asyncio.get_running_loop().time() - begun < 2
    async with asyncio.timeout(2):
        assert set(await asyncio.gather(*watches)) == {0}
    await client.aclose()


async def test_a_client_that_hangs_up_leaves_nothing(web: Web) -> None:
    """When the connection of a watcher is cut, its cursor is removed."""
    log = web.api.backend.store.hub.log(web.api.backend.resource("example.org", "v1", "widgets").key)
    headers = {"Authorization": f"Bearer {web.token}"}
    response = await web.session.get(f"{WIDGETS}?watch=1", headers=headers)
    await asyncio.sleep(0.1)
    assert "watchers=1" in repr(log)
    response.close()
    await asyncio.sleep(0.3)
    assert "watchers=0" in repr(log)


async def test_a_fault_of_our_own_is_a_500_without_details(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception is answered with a Status; its text, which may contain secrets, is in the log only."""

    async def broken(*args: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(web.api.backend, "get", broken)
    code, body, _ = await web.ask("GET", f"{WIDGETS}/a")
    assert (code, body["reason"]) == (500, "InternalError")
    assert "hunter2" not in body["message"]


async def test_the_http_client_of_the_operator_works(web: Web) -> None:
    """metal.kube's client reads, writes, pages and watches over the socket."""
    async with HTTPClient(from_file(web.api.kubeconfig)) as client:
        version = (await client.list(WIDGET)).resource_version
        made = await client.create(WIDGET, {"metadata": {"name": "a", "namespace": "default"}, "spec": {"size": 1}})
        await client.patch_status(WIDGET, "a", {"status": {"phase": "Up"}}, "default")
        await client.apply(
            WIDGET, {"metadata": {"name": "a", "namespace": "default"}, "spec": {"size": 2}}, manager="m"
        )
        await client.delete(WIDGET, "a", "default", uid=made.metadata.uid)
        events = []
        async for event in client.watch(WIDGET, resource_version=version):
            events.append(event.type.value)
            if len(events) == 4:
                break
    assert events == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
