"""Web Push messages: encrypted for one browser (RFC 8291 over RFC 8188), signed for its push service (RFC 8292).

Pure: keys and salt come in as arguments. `coderd/services/notifications/web_push.py` sends them.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

SALT_BYTES = 16
POINT_BYTES = 65
"""Bytes of an uncompressed point on P-256."""
AUTH_BYTES = 16
"""RFC 8291 section 3.2."""
MAX_PAYLOAD = 3000
"""Bytes of text. Push services take at least 4096 bytes of body (RFC 8030 section 7.2); the rest is room for headers,
padding and services that count otherwise."""
VAPID_LIFETIME = 12 * 3600
"""Seconds; RFC 8292 section 2 allows 24 hours."""
_RECORD_SIZE = 4096


def decode_key_untrusted(text: str, length: int) -> bytes:
    """Decode base64 as browsers write it: either alphabet, padding or none. Raises ValueError."""
    plain = text.strip().rstrip("=").replace("+", "-").replace("/", "_")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("it is not base64") from error
    if len(data) != length:
        raise ValueError(f"it has {len(data)} bytes instead of {length}")
    return data


def base64url(data: bytes) -> str:
    """Encode without padding, as JWTs and push services require."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def check_point_untrusted(point: bytes) -> None:
    """Raise ValueError for bytes that are not a point of P-256."""
    from cryptography.hazmat.primitives.asymmetric import ec

    ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def public_point(key: EllipticCurvePrivateKey) -> bytes:
    """Return the uncompressed point of a key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def private_key(scalar: bytes) -> EllipticCurvePrivateKey:
    """Return the key of 32 bytes, big-endian."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int.from_bytes(scalar, "big"), ec.SECP256R1())


def encrypt(text: bytes, reader: bytes, auth: bytes, sender: EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Return the body of a push request: one record of `aes128gcm` (RFC 8291 section 4).

    `reader` and `auth` are the subscription's; `sender` must be a key of this message alone.
    """
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    def derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
        return HKDF(hashes.SHA256(), length, salt, info).derive(secret)

    own = public_point(sender)
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), reader))
    secret = derive(shared, auth, b"WebPush: info\0" + reader + own, 32)
    key = derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    sealed = AESGCM(key).encrypt(nonce, text + b"\x02", None)  # 2 marks the last record (RFC 8188 section 2)
    return salt + _RECORD_SIZE.to_bytes(4, "big") + bytes([len(own)]) + own + sealed


def authorization(endpoint: str, contact: str, key: EllipticCurvePrivateKey, now: int) -> str:
    """Return the Authorization header that identifies the sender to a push service (RFC 8292 section 3)."""
    import jwt

    parts = urlsplit(endpoint)
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now + VAPID_LIFETIME, "sub": contact}
    token = jwt.encode(claims, key, algorithm="ES256")
    return f"vapid t={token}, k={base64url(public_point(key))}"
