"""Refusals: code, reason, sentence and causes are those that a script, or kubectl, reads."""

import pytest

from tests.conformance.api import Api, Obj, Reply, config_map, widget

CORE = "/api/v1"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"


def causes(reply: Reply) -> set[tuple[str, str, str]]:
    """Field, reason and message of each cause; kube-apiserver tells some of them twice."""
    return {(str(c.get("field")), str(c["reason"]), str(c["message"])) for c in reply.causes}


def told(reply: Reply) -> tuple[int, str, str]:
    return reply.code, reply.reason, reply.message


async def test_missing_object(api: Api) -> None:
    """Every verb on an object that is not there answers NotFound and names it."""
    path = api.path(name="zz")
    versioned = {**widget("zz"), "metadata": {"name": "zz", "resourceVersion": "1"}}
    asked = [await api.get(path), await api.delete(path), await api.patch(path, {}), await api.update(path, versioned)]

    for refused in asked:
        assert told(refused) == (404, "NotFound", 'widgets.conformance.example.org "zz" not found')
        assert refused.body["details"] == {"name": "zz", "group": "conformance.example.org", "kind": "widgets"}


async def test_missing_namespace(api: Api) -> None:
    """Nothing is created in a namespace that is not there; listing it finds nothing."""
    path = "/apis/conformance.example.org/v1/namespaces/none/widgets"

    refused = await api.create(path, widget())

    assert told(refused) == (404, "NotFound", 'namespaces "none" not found')
    assert (await api.get(path)).ok()["items"] == []


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/openapi/v4",
        "/apis/nothing.example.org",
        "/apis/nothing.example.org/v1",
        "/apis/nothing.example.org/v1/widgets",
        "/apis/nothing.example.org/v1/widgets/a",
        "/apis/conformance.example.org/v2",
        "/apis/conformance.example.org/v2/widgets",
        "/apis/conformance.example.org/v1/gadgets",
        "/apis/conformance.example.org/v1/gadgets/a/status",
    ],
)
async def test_paths_that_lead_nowhere(http: Api, method: str, path: str) -> None:
    """Where there is no resource, or no longer, the answer is plain text; kubectl words it by itself."""
    reply = await http.way.request(method, path)

    assert (reply.code, reply.body) == (404, {"raw": "404 page not found\n"})
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        f"{CORE}/things",
        f"{CORE}/namespaces/default/things/a",
        f"{CORE}/namespaces/default/configmaps/a/status",
        f"{CORE}/namespaces/default/configmaps/a/b/c",
        f"{CORE}/namespaces/default/namespaces/a",
        "/apis/coordination.k8s.io/v9",
        "/apis/coordination.k8s.io/v9/leases",
        "/apis/coordination.k8s.io/v1/things",
    ],
)
async def test_unknown_resources_of_built_in_groups(http: Api, path: str) -> None:
    """Groups that every cluster has answer with a Status."""
    reply = await http.get(path)

    assert told(reply) == (404, "NotFound", "the server could not find the requested resource")
    assert reply.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("sub", ["scale", "b/c"])
async def test_unknown_parts_of_a_custom_object(http: Api, sub: str) -> None:
    """What a custom object does not have is told like an object that is not there."""
    reply = await http.get(http.path(name="a", sub=sub))

    assert told(reply) == (404, "NotFound", 'widgets.conformance.example.org "a" not found')


async def test_stale_update(api: Api) -> None:
    """An update with an old resourceVersion is a Conflict that says what to do."""
    made = (await api.create(api.path(), widget(size=1))).ok()
    (await api.update(api.path(name="a"), {**made, "spec": {"size": 2}})).ok()

    refused = await api.update(api.path(name="a"), {**made, "spec": {"size": 3}})

    assert told(refused) == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on widgets.conformance.example.org "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )


async def test_update_of_a_namesake(api: Api) -> None:
    """An update that means another object of the same name is a Conflict with both uids."""
    made = (await api.create(api.path(), widget(size=1))).ok()

    refused = await api.update(api.path(name="a"), {**made, "metadata": {**made["metadata"], "uid": "gone"}})

    key = f"/registry/conformance.example.org/widgets/{api.space}/a"
    assert told(refused) == (
        409,
        "Conflict",
        f'Operation cannot be fulfilled on widgets.conformance.example.org "a": StorageError: invalid object, Code: 4, '
        f"Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: gone, "
        f"UID in object meta: {made['metadata']['uid']}",
    )


async def test_update_needs_a_version(api: Api) -> None:
    """A custom object is not replaced without a resourceVersion; a ConfigMap is."""
    (await api.create(api.path(), widget())).ok()
    (await api.create(api.path("configmaps", base=CORE), config_map())).ok()

    refused = await api.update(api.path(name="a"), widget())

    assert (refused.code, refused.reason) == (422, "Invalid")
    message = "Invalid value: 0: must be specified for an update"
    assert causes(refused) == {("metadata.resourceVersion", "FieldValueInvalid", message)}
    (await api.update(api.path("configmaps", "a", base=CORE), config_map(x="1"))).ok()


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"name": "b"}, "the name of the object (b) does not match the name on the URL (a)"),
        ({}, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (
            {"name": "a", "namespace": "other"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
async def test_update_of_another_object(api: Api, meta: Obj, message: str) -> None:
    """The body names the object of the path."""
    (await api.create(api.path(), widget())).ok()

    refused = await api.update(api.path(name="a"), {**widget(), "metadata": meta})

    assert told(refused) == (400, "BadRequest", message)


async def test_wrong_kind_and_version(api: Api) -> None:
    """A custom object of another kind breaks a rule; one of another version cannot be read."""
    kind = await api.create(api.path(), {**widget("k"), "kind": "Gadget"})
    version = await api.create(api.path(), {**widget("k"), "apiVersion": "conformance.example.org/v2"})

    message = 'Gadget.conformance.example.org "k" is invalid: kind: Invalid value: "Gadget": must be Widget'
    assert told(kind) == (422, "Invalid", message)
    assert told(version) == (
        400,
        "BadRequest",
        "the API version in the data (conformance.example.org/v2) does not match the expected API version "
        "(conformance.example.org/v1)",
    )


async def test_wrong_kind_of_a_built_in(api: Api) -> None:
    """A body of an unknown kind cannot be handled as a ConfigMap."""
    refused = await api.create(api.path("configmaps", base=CORE), {**config_map("k"), "kind": "Gadget"})

    assert told(refused)[:2] == (400, "BadRequest")
    assert refused.message.startswith('Gadget in version "v1" cannot be handled as a ConfigMap: no kind "Gadget" is')


async def test_a_created_object_has_no_version(api: Api) -> None:
    """An object that is to be created and has a resourceVersion is an error without a reason."""
    refused = await api.create(api.path(), {**widget(), "metadata": {"name": "a", "resourceVersion": "5"}})

    assert told(refused) == (500, "", "resourceVersion should not be set on objects to be created")


@pytest.mark.parametrize(
    ("meta", "field", "message"),
    [
        ({}, "metadata.name", "Required value: name or generateName is required"),
        ({"name": "Bad_Name"}, "metadata.name", f'Invalid value: "Bad_Name": {SUBDOMAIN}'),
        ({"name": "a" * 254}, "metadata.name", f'Invalid value: "{"a" * 254}": must be no more than 253 characters'),
        ({"name": "a", "labels": {"a b": "c"}}, "metadata.labels", 'Invalid value: "a b": name part must consist of'),
    ],
)
async def test_bad_metadata(api: Api, meta: Obj, field: str, message: str) -> None:
    """Names and labels that break a rule are Invalid, and the cause says which rule."""
    refused = await api.create(api.path(), {**widget(), "metadata": meta})

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert {cause[0] for cause in causes(refused)} == {field}
    assert all(cause[2].startswith(message) for cause in causes(refused))


@pytest.mark.parametrize(
    ("meta", "what"),
    [
        ({"name": 5}, "number into Go struct field ObjectMeta.name of type string"),
        ({"name": "a", "labels": {"a": 1}}, "number into Go struct field ObjectMeta.labels of type string"),
        ({"name": "a", "finalizers": "x"}, "string into Go struct field ObjectMeta.finalizers of type []string"),
        ("x", "string into Go value of type v1.ObjectMeta"),
    ],
)
async def test_mistyped_metadata(api: Api, meta: object, what: str) -> None:
    """Metadata of the wrong type cannot be decoded at all."""
    refused = await api.create(api.path(), {**widget(), "metadata": meta})

    message = f'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal {what}'
    assert told(refused) == (400, "BadRequest", message)


async def test_every_cause_at_once(api: Api) -> None:
    """Everything that is wrong with an object is told at once."""
    refused = await api.create(api.path(), widget(size=-1, note=5, tags=["a", "a"], ports=[{"port": 1}]))

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert {cause[:2] for cause in causes(refused)} >= {
        ("spec.size", "FieldValueInvalid"),
        ("spec.note", "FieldValueTypeInvalid"),
        ("spec.ports[0].name", "FieldValueRequired"),
    }
    message = "Invalid value: -1: spec.size in body should be greater than or equal to 0"
    assert ("spec.size", "FieldValueInvalid", message) in causes(refused)


async def test_delete_preconditions(api: Api) -> None:
    """A delete that counts on another uid or version is a Conflict; the object stays."""
    made = (await api.create(api.path(), widget())).ok()["metadata"]

    uid = await api.delete(api.path(name="a"), {"preconditions": {"uid": "gone"}})
    version = await api.delete(api.path(name="a"), {"preconditions": {"resourceVersion": "3"}})

    head = 'Operation cannot be fulfilled on Widget.conformance.example.org "a": the'
    assert told(uid) == (
        409,
        "Conflict",
        f"{head} UID in the precondition (gone) does not match the UID in record ({made['uid']}). "
        "The object might have been deleted and then recreated",
    )
    assert told(version) == (
        409,
        "Conflict",
        f"{head} ResourceVersion in the precondition (3) does not match the ResourceVersion in record "
        f"({made['resourceVersion']}). The object might have been modified",
    )
    (await api.get(api.path(name="a"))).ok()


async def test_name_that_cannot_be_made(api: Api) -> None:
    """A name beside generateName that is taken is AlreadyExists, to be tried again."""
    (await api.create(api.path(), widget())).ok()

    refused = await api.create(api.path(), {**widget(), "metadata": {"generateName": "x-", "name": "a"}})

    assert told(refused) == (
        409,
        "AlreadyExists",
        'widgets.conformance.example.org "a" already exists, the server was not able to generate a unique name for '
        "the object",
    )
    assert refused.body["details"]["retryAfterSeconds"] == 1


async def test_bad_options(api: Api) -> None:
    """Options of a write are checked together, under the name of their kind."""
    refused = await api.create(api.path(), widget(), dryRun="x", fieldValidation="y")

    assert refused.message.startswith('CreateOptions.meta.k8s.io "" is invalid: [')
    unsupported = 'Unsupported value: "y": supported values: "", "Ignore", "Strict", "Warn"'
    assert causes(refused) == {
        ("dryRun", "FieldValueNotSupported", 'Unsupported value: ["x"]: supported values: "All"'),
        ("fieldValidation", "FieldValueNotSupported", unsupported),
    }


async def test_bad_bodies(http: Api) -> None:
    """What is no JSON is 400, what has an unknown type 415; both sentences name what was expected."""
    garbage = await http.create(http.path(), b"{not json")
    empty = await http.create(http.path(), b"")
    text = await http.way.request("POST", http.path(), b"{}", content="text/plain")
    strategic = await http.patch(http.path(name="a"), {}, "application/strategic-merge-patch+json")

    head = "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: "
    assert garbage.code == empty.code == 400
    assert garbage.message.startswith(head)
    assert empty.message.startswith(f"{head}unexpected end of JSON input")
    listed = "the body of the request was in an unknown format - accepted media types include: "
    kinds = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert told(text) == (415, "UnsupportedMediaType", listed + kinds)
    patches = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    assert told(strategic)[2] == listed + patches


@pytest.mark.differs(
    "etcd refuses objects of more than 1.5 MiB, which kube-apiserver reports as 500; the embedded API stores them"
)
async def test_big_bodies(http: Api) -> None:
    """A body of more than 3 MiB is 413."""
    limit = await http.create(http.path(), widget("big", note="y" * (3 * 1024 * 1024)))
    large = await http.create(http.path(), widget("large", note="y" * (1600 * 1024)))

    assert told(limit) == (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
    assert large.code == (500 if http.is_kube else 201)
