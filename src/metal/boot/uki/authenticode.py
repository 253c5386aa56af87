"""Signatures for Secure Boot: Microsoft's Authenticode for PE files (version 1.0, 2008), a PKCS #7 in the file itself.

The signed digest covers the whole file except three places: the checksum, the directory entry of the signatures, and
the signatures at the end. RSA with PKCS #1 v1.5 and no signing time: the same program gets the same signature, on each
replica and for each range of it that is requested.
"""

import hashlib
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat import asn1
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from metal.boot.errors import ImageError
from metal.boot.uki.layout import Layout, padded
from metal.boot.uki.pe import Facts

if TYPE_CHECKING:
    from hashlib import _Hash

_SHA256 = x509.ObjectIdentifier("2.16.840.1.101.3.4.2.1")
_RSA = x509.ObjectIdentifier("1.2.840.113549.1.1.1")
_SIGNED_DATA = x509.ObjectIdentifier("1.2.840.113549.1.7.2")
_CONTENT_TYPE = x509.ObjectIdentifier("1.2.840.113549.1.9.3")
_MESSAGE_DIGEST = x509.ObjectIdentifier("1.2.840.113549.1.9.4")
_INDIRECT_DATA = x509.ObjectIdentifier("1.3.6.1.4.1.311.2.1.4")
_PE_IMAGE_DATA = x509.ObjectIdentifier("1.3.6.1.4.1.311.2.1.15")
_OBSOLETE = "<<<Obsolete>>>".encode("utf-16-be")
_PE_IMAGE = bytes((0x30, 0x25, 3, 1, 0, 0xA0, 0x20, 0xA2, 0x1E, 0x80, 0x1C)) + _OBSOLETE
"""SpcPeImageData: no flags, and the link that the specification prescribes."""
_REVISION, _PKCS7 = 0x0200, 0x0002
"""WIN_CERT_REVISION_2_0 and WIN_CERT_TYPE_PKCS_SIGNED_DATA."""
_ALIGNMENT = 8


@asn1.sequence
class _Algorithm:
    algorithm: x509.ObjectIdentifier
    parameters: asn1.Null


@asn1.sequence
class _DigestInfo:
    algorithm: _Algorithm
    digest: bytes


@asn1.sequence
class _PeImage:
    kind: x509.ObjectIdentifier
    value: asn1.TLV


@asn1.sequence
class _IndirectData:
    data: _PeImage
    digest: _DigestInfo


@asn1.sequence
class _Content:
    kind: x509.ObjectIdentifier
    content: Annotated[_IndirectData, asn1.Explicit(0)]


@asn1.sequence
class _Attribute:
    kind: x509.ObjectIdentifier
    values: asn1.SetOf[asn1.TLV]


@asn1.sequence
class _IssuerAndSerial:
    issuer: asn1.TLV
    serial: int


@asn1.sequence
class _SignerInfo:
    version: int
    signer: _IssuerAndSerial
    digest: _Algorithm
    attributes: Annotated[asn1.SetOf[_Attribute], asn1.Implicit(0)]
    encryption: _Algorithm
    signature: bytes


@asn1.sequence
class _SignedData:
    version: int
    digests: asn1.SetOf[_Algorithm]
    content: _Content
    certificates: Annotated[asn1.SetOf[x509.Certificate], asn1.Implicit(0)]
    signers: asn1.SetOf[_SignerInfo]


@asn1.sequence
class _Message:
    kind: x509.ObjectIdentifier
    content: Annotated[_SignedData, asn1.Explicit(0)]


class Signer:
    """Signs EFI programs with the site's key, which firmware trusts by the certificate in its variable db."""

    def __init__(self, certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> None:
        self._certificate, self._key = certificate, key

    def __repr__(self) -> str:
        return f"<Signer {self._certificate.subject.rfc4514_string()}>"

    @classmethod
    def from_pem(cls, certificate: bytes, key: bytes) -> "Signer":
        """A signer from PEM texts. Raises ValueError when they do not fit together or the key is not RSA."""
        try:
            loaded, private = x509.load_pem_x509_certificate(certificate), serialization.load_pem_private_key(key, None)
        except (TypeError, ValueError, UnsupportedAlgorithm):
            raise ValueError(
                "certificate and key for Secure Boot must be PEM, and the key without a password"
            ) from None
        if not isinstance(private, rsa.RSAPrivateKey):
            raise ValueError("the key for Secure Boot must be RSA: firmware need not know other kinds")
        if loaded.public_key() != private.public_key():
            raise ValueError("the key for Secure Boot does not belong to its certificate")
        return cls(loaded, private)

    def pkcs7(self, digest: bytes) -> bytes:
        """The signature over the SHA-256 digest of a program (`digest_of`), DER."""
        content = _IndirectData(
            data=_PeImage(kind=_PE_IMAGE_DATA, value=_tlv(_PE_IMAGE)),
            digest=_DigestInfo(algorithm=_algorithm(_SHA256), digest=digest),
        )
        data = _SignedData(
            version=1,
            digests=asn1.SetOf([_algorithm(_SHA256)]),
            content=_Content(kind=_INDIRECT_DATA, content=content),
            certificates=asn1.SetOf([self._certificate]),
            signers=asn1.SetOf([self._signer_info(asn1.encode_der(content))]),
        )
        return asn1.encode_der(_Message(kind=_SIGNED_DATA, content=data))

    def _signer_info(self, content: bytes) -> _SignerInfo:
        digest = hashlib.sha256(_value(content)).digest()
        attributes = asn1.SetOf(
            [
                _attribute(_CONTENT_TYPE, asn1.encode_der(_INDIRECT_DATA)),
                _attribute(_MESSAGE_DIGEST, asn1.encode_der(digest)),
            ]
        )
        issuer = _tlv(self._certificate.issuer.public_bytes())
        return _SignerInfo(
            version=1,
            signer=_IssuerAndSerial(issuer=issuer, serial=self._certificate.serial_number),
            digest=_algorithm(_SHA256),
            attributes=attributes,
            encryption=_algorithm(_RSA),
            signature=self._key.sign(asn1.encode_der(attributes), padding.PKCS1v15(), hashes.SHA256()),
        )


def signed(program: Layout, facts: Facts, signer: Signer, digest: bytes | None = None) -> Layout:
    """The program with one more signature; reads its files unless the `digest` of `digest_of` is given.

    Raises ImageError when it cannot be signed, OSError.
    """
    body, earlier = _split(program, facts)
    table = earlier + _entry(signer.pkcs7(digest or digest_of(program, facts)))
    header = struct.pack("<II", body.size, len(table))
    return body.replaced(facts.signatures, header) + Layout((table,))


def digest_of(program: Layout, facts: Facts) -> bytes:
    """The digest that is signed; reads the program's files. Raises ImageError when it cannot be signed, OSError."""
    body, _ = _split(program, facts)
    hashed = begin_digest(body, facts)
    return hashed.digest()


def begin_digest(beginning: Layout, facts: Facts) -> "_Hash":
    """The state of the digest after the beginning of a program, for all programs that begin so. Raises OSError."""
    hashed = hashlib.sha256()
    for chunk in _without_signature_fields(beginning, facts):
        hashed.update(chunk)
    return hashed


def _without_signature_fields(body: Layout, facts: Facts) -> Iterator[bytes]:
    after_checksum, after_entry = facts.checksum + 4, facts.signatures + 8
    yield from body.cut(0, facts.checksum).chunks()
    yield from body.cut(after_checksum, facts.signatures - after_checksum).chunks()
    yield from body.cut(after_entry, body.size - after_entry).chunks()


def _split(program: Layout, facts: Facts) -> tuple[Layout, bytes]:
    """What is signed, and the signatures that the program has already."""
    if not facts.contiguous:
        raise ImageError("NotSignable", "the EFI program cannot be signed: its sections do not follow each other")
    offset, size = facts.signed
    if not offset:
        return padded(program, _ALIGNMENT), b""
    if offset + size != program.size:
        raise ImageError("NotSignable", "the EFI program cannot be signed: its signatures are not at its end")
    return program.cut(0, offset), program.cut(offset, size).read()


def _entry(signature: bytes) -> bytes:
    """WIN_CERTIFICATE. The padding counts, because some firmware takes the length as it is."""
    content = signature + bytes(-len(signature) % _ALIGNMENT)
    return struct.pack("<IHH", 8 + len(content), _REVISION, _PKCS7) + content


def _algorithm(identifier: x509.ObjectIdentifier) -> _Algorithm:
    return _Algorithm(algorithm=identifier, parameters=asn1.Null())


def _attribute(kind: x509.ObjectIdentifier, value: bytes) -> _Attribute:
    return _Attribute(kind=kind, values=asn1.SetOf([_tlv(value)]))


def _tlv(der: bytes) -> asn1.TLV:
    return asn1.decode_der(asn1.TLV, der)


def _value(der: bytes) -> bytes:
    """The content of an element, which is what its digest in a signature covers."""
    return bytes(_tlv(der).data)
