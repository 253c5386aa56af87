"""Signatures over evidence are valid for exactly what was signed."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from metal.api.common import LocalRef
from metal.api.meta import ObjectMeta
from metal.api.sanitization import SanitizationEvidence, SanitizationEvidenceSpec, SanitizationEvidenceStatus
from metal.evidence.signing import (
    KeyUnusable,
    SignatureInvalid,
    SigningKey,
    canonical,
    load_private,
    load_public,
    verify,
)
from tests.evidence.drives import erased

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = SigningKey.new()
KEYS = {KEY.public.id: KEY.public}


def evidence(**status: object) -> SanitizationEvidence:
    spec = SanitizationEvidenceSpec(server_ref=LocalRef(name="s1"), system_uuid="u", claim_uid="c", policy="Clear")
    said = SanitizationEvidenceStatus(phase="Succeeded", ended_at=NOW, drives=(erased(),), **status)  # type: ignore[arg-type]  # by name
    return SanitizationEvidence(metadata=ObjectMeta(name="s1-b1"), spec=spec, status=said)


def test_what_was_signed_holds_after_its_way_through_json() -> None:
    """The signed bytes depend only on the content of the object."""
    signed = KEY.sign(evidence(), NOW)
    again = msgspec.json.decode(msgspec.json.encode(signed), type=SanitizationEvidence)
    verify(again, KEYS)
    signature = signed.status.signature
    assert signature is not None
    assert (signature.algorithm, signature.key_id, signature.signed_at) == ("Ed25519", KEY.public.id, NOW)


def test_what_is_signed_is_written_down_here() -> None:
    """Other tools verify these bytes: no blanks, members sorted, defaults omitted."""
    small = SanitizationEvidence(metadata=ObjectMeta(name="n"), status=SanitizationEvidenceStatus(phase="Failed"))
    assert canonical(small) == b'{"kind":"SanitizationEvidence","name":"n","spec":{},"status":{"phase":"Failed"}}'


CHANGES: dict[str, Callable[[Any], SanitizationEvidence]] = {
    "a drive": lambda e: _status(e, drives=(erased(result="Failed"),)),
    "the phase": lambda e: _status(e, phase="Failed"),
    "what is owed": lambda e: _status(e, owed=("all",)),
    "when it was accepted": lambda e: _status(e, accepted_at=NOW),
    "the server": lambda e: msgspec.structs.replace(e, spec=msgspec.structs.replace(e.spec, system_uuid="x")),
    "the name": lambda e: msgspec.structs.replace(e, metadata=ObjectMeta(name="s2-b1")),
    "the time": lambda e: _status(e, signature=msgspec.structs.replace(e.status.signature, signed_at=None)),
    "the value": lambda e: _status(e, signature=msgspec.structs.replace(e.status.signature, value="AAAA")),
    "no base64": lambda e: _status(e, signature=msgspec.structs.replace(e.status.signature, value="%")),
}  # fmt: skip


def _status(one: SanitizationEvidence, **changes: object) -> SanitizationEvidence:
    return msgspec.structs.replace(one, status=msgspec.structs.replace(one.status, **changes))


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_breaks_the_signature(what: str) -> None:
    """Each part of the content is covered."""
    with pytest.raises(SignatureInvalid, match="changed after it was signed"):
        verify(CHANGES[what](KEY.sign(evidence(), NOW)), KEYS)


def test_labels_and_versions_are_not_covered() -> None:
    """The API sets them, and a move to another API changes them."""
    signed = KEY.sign(evidence(), NOW)
    meta = ObjectMeta(name="s1-b1", labels={"a": "b"}, resource_version="77", uid="other")
    verify(msgspec.structs.replace(signed, metadata=meta), KEYS)


def test_without_signature_key_or_algorithm_nothing_holds() -> None:
    """Each case has its own message."""
    signed = KEY.sign(evidence(), NOW)
    other = msgspec.structs.replace(signed.status.signature, algorithm="none")  # type: ignore[type-var]  # it is signed
    with pytest.raises(SignatureInvalid, match="not signed"):
        verify(evidence(), KEYS)
    with pytest.raises(SignatureInvalid, match=f"public key {KEY.public.id} is unknown"):
        verify(signed, {})
    with pytest.raises(SignatureInvalid, match="'none' is not Ed25519"):
        verify(_status(signed, signature=other), KEYS)


def test_keys_survive_pem_and_never_show_themselves() -> None:
    """The private key is in no repr."""
    assert load_private(KEY.pem).public.id == KEY.public.id == load_public(KEY.public.pem.encode()).id
    assert len(KEY.public.id) == 16
    secret = base64.b64encode(KEY.pem).decode()
    assert secret[40:80] not in repr(KEY)
    assert repr(KEY) == f"<SigningKey {KEY.public.id}>"


@pytest.mark.parametrize("pem", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused_with_a_sentence(pem: bytes) -> None:
    """The text itself is not shown."""
    with pytest.raises(KeyUnusable, match="no private key in PEM"):
        load_private(pem)
    with pytest.raises(KeyUnusable, match="no public key in PEM"):
        load_public(pem)


def test_a_key_of_another_kind_is_refused() -> None:
    """ECDSA is not Ed25519."""
    other = generate_private_key(SECP256R1())
    with pytest.raises(KeyUnusable, match="not an Ed25519 key"):
        load_private(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(KeyUnusable, match="not an Ed25519 key"):
        load_public(other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@given(st.text(max_size=20), st.integers(0, 2**53), st.booleans())
def test_any_evidence_that_was_signed_holds(text: str, size: int, rotational: bool) -> None:
    """The signature is valid for any content."""
    drive = erased(text.encode("utf-8", "ignore").decode(), size=size, rotational=rotational)
    signed = KEY.sign(_status(evidence(), drives=(drive,)), NOW)
    verify(msgspec.json.decode(msgspec.json.encode(signed), type=SanitizationEvidence), KEYS)
