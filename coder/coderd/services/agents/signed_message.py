"""Signed data in the Cryptographic Message Syntax, by which Azure attests its machines.

This module parses DER and verifies the single signature with the certificate that the message names. Trust in that
certificate is decided by `instance_identity.py`.

Source: RFC 5652 sections 3, 5 and 11; X.690 (DER).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_SEQUENCE, _SET, _INTEGER, _OCTETS, _OID = 0x30, 0x31, 0x02, 0x04, 0x06
_CONTEXT_0 = 0xA0
_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_MESSAGE_DIGEST = bytes.fromhex("2a864886f70d010904")
_DIGESTS: dict[bytes, hashes.HashAlgorithm] = {
    bytes.fromhex("608648016503040201"): hashes.SHA256(),
    bytes.fromhex("608648016503040202"): hashes.SHA384(),
    bytes.fromhex("608648016503040203"): hashes.SHA512(),
}
_MAX_NODES = 4096


class MessageRefused(Exception):  # noqa: N818 - named after the event
    """Raised for a message that is not signed, or has a wrong signature. The text has the reason."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A message with a valid signature."""

    content: bytes
    signer: x509.Certificate
    "Certificate of the signer, not yet trusted."
    others: tuple[x509.Certificate, ...]
    "Further certificates of the message."


@dataclass(frozen=True, slots=True)
class _Node:
    tag: int
    body: bytes
    encoded: bytes


def _split(data: bytes) -> list[_Node]:
    """Return the consecutive elements of `data`. Raises MessageRefused."""
    nodes: list[_Node] = []
    at = 0
    while at < len(data):
        if len(nodes) >= _MAX_NODES or at + 2 > len(data):
            raise MessageRefused("the message is malformed")
        length = data[at + 1]
        begin = at + 2
        if length & 0x80:
            count = length & 0x7F
            if not 0 < count <= 4:  # 0 is the indefinite length, which DER forbids
                raise MessageRefused("the message is not in DER")
            length = int.from_bytes(data[begin : begin + count], "big")
            begin += count
        end = begin + length
        if end > len(data):
            raise MessageRefused("the message is cut off")
        nodes.append(_Node(data[at], data[begin:end], data[at:end]))
        at = end
    return nodes


def _only(data: bytes, tag: int) -> _Node:
    nodes = _split(data)
    if len(nodes) != 1 or nodes[0].tag != tag:
        raise MessageRefused("the message is malformed")
    return nodes[0]


def _take(nodes: list[_Node], *tags: int) -> list[_Node]:
    if len(nodes) < len(tags) or any(node.tag != tag for node, tag in zip(nodes, tags, strict=False)):
        raise MessageRefused("the message is malformed")
    return nodes


def open_untrusted(message: bytes) -> Signed:
    """Return the content of a message with exactly one signer and a valid signature. Raises MessageRefused."""
    outer = _take(_split(_only(message, _SEQUENCE).body), _OID, _CONTEXT_0)
    if outer[0].body != _SIGNED_DATA:
        raise MessageRefused("the message is not signed")
    parts = _take(_split(_only(outer[1].body, _SEQUENCE).body), _INTEGER, _SET, _SEQUENCE)
    inner = _take(_split(parts[2].body), _OID, _CONTEXT_0)
    content = _only(inner[1].body, _OCTETS).body
    signer = _only(parts[-1].body, _SEQUENCE) if parts[-1].tag == _SET and len(parts) > 3 else None
    if signer is None:
        raise MessageRefused("the message has not exactly one signer")
    certificates = [
        certificate_untrusted(node.encoded)
        for part in parts[3:-1]
        if part.tag == _CONTEXT_0
        for node in _split(part.body)
    ]
    certificate = _check_signer(_take(_split(signer.body), _INTEGER, _SEQUENCE, _SEQUENCE), content, certificates)
    return Signed(content, certificate, tuple(other for other in certificates if other is not certificate))


def certificate_untrusted(der: bytes) -> x509.Certificate:
    """Return a certificate. Raises MessageRefused, also for a warning of the library: genuine ones cause none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            certificate = x509.load_der_x509_certificate(der)
            _ = (certificate.issuer, certificate.subject, certificate.serial_number, certificate.public_key())  # lazy
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion, Warning) as error:
        raise MessageRefused("the certificate cannot be read") from error
    return certificate


def _check_signer(fields: list[_Node], content: bytes, certificates: list[x509.Certificate]) -> x509.Certificate:
    certificate = _named(fields[1].body, certificates)
    digest = _DIGESTS.get(_split(fields[2].body)[0].body) if fields[2].body else None
    if digest is None:
        raise MessageRefused("the message is signed by an unsupported algorithm")
    rest = fields[3:]
    covered = content
    if rest and rest[0].tag == _CONTEXT_0:
        if _digest_attribute(rest[0].body) != _hash(digest, content):
            raise MessageRefused("the content of the message was changed")
        # The signature covers the attributes with the tag of a SET, not the implicit tag (RFC 5652, section 5.4).
        covered = bytes((_SET,)) + rest[0].encoded[1:]
        rest = rest[1:]
    _take(rest, _SEQUENCE, _OCTETS)
    try:
        key = certificate.public_key()
        if not isinstance(key, rsa.RSAPublicKey):
            raise UnsupportedAlgorithm("no RSA key")
        key.verify(rest[1].body, covered, padding.PKCS1v15(), digest)
    except (UnsupportedAlgorithm, ValueError) as error:
        raise MessageRefused("the message is signed by an unsupported algorithm") from error
    except InvalidSignature as error:
        raise MessageRefused("the signature of the message is wrong") from error
    return certificate


def _named(name: bytes, certificates: list[x509.Certificate]) -> x509.Certificate:
    """Return the certificate with this issuer and serial number. Raises MessageRefused."""
    issuer, serial = _take(_split(name), _SEQUENCE, _INTEGER)[:2]
    number = int.from_bytes(serial.body, "big", signed=True)
    for certificate in certificates:
        if certificate.serial_number == number and certificate.issuer.public_bytes() == issuer.encoded:
            return certificate
    raise MessageRefused("the certificate of the signer is not with the message")


def _digest_attribute(attributes: bytes) -> bytes:
    for attribute in _split(attributes):
        kind = _take(_split(attribute.body), _OID, _SET)
        if kind[0].body == _MESSAGE_DIGEST:
            return _only(kind[1].body, _OCTETS).body
    raise MessageRefused("the message does not say what was signed")


def _hash(algorithm: hashes.HashAlgorithm, data: bytes) -> bytes:
    digest = hashes.Hash(algorithm)
    digest.update(data)
    return digest.finalize()
