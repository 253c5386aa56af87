"""What the writers of boot configurations share: manifest and reference."""

from metal.api.common import ObjectRef
from metal.controllers.shared.boot_config import CLAIM_REF, manifest, reference
from metal.kube.meta.objects import Key

KEY = Key("c1", "team")


def test_a_server_that_names_the_configuration_is_not_written() -> None:
    """Only another name or namespace is a change, and so is none."""
    named = {"spec": {CLAIM_REF: {"namespace": "team", "name": "c1"}}}
    assert reference(CLAIM_REF, ObjectRef(namespace="team", name="c1"), KEY) == {}
    assert reference(CLAIM_REF, ObjectRef(namespace="other", name="c1"), KEY) == named
    assert reference(CLAIM_REF, None, KEY) == named


def test_a_configuration_has_its_owner_and_no_empty_annotations() -> None:
    """The owner's reference makes the garbage collector remove it."""
    made = manifest(KEY, {"uid": "u"}, {"image": "os:1"})
    assert made["metadata"] == {"name": "c1", "namespace": "team", "ownerReferences": [{"uid": "u"}]}
    assert made["spec"] == {"image": "os:1"}
    assert manifest(KEY, {}, {}, {"a": "b"})["metadata"]["annotations"] == {"a": "b"}
