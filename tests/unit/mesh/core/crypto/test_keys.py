"""Keys: valid and invalid key texts; secrets stay hidden; bad points are rejected."""

from __future__ import annotations

import pytest

from coder.mesh.core.crypto.box import SharedBox, open_untrusted, seal
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import CryptoError

KEY = PrivateKey(bytes(range(32)))
OTHER = PrivateKey(bytes(range(1, 33)))


def test_generated_keys_are_clamped() -> None:
    raw = PrivateKey.generate(lambda n: b"\xff" * n).reveal()
    assert (raw[0], raw[31]) == (0xF8, 0x7F)


def test_private_key_repr_is_masked() -> None:
    assert KEY.reveal().hex() not in repr(KEY)
    assert "privkey" not in repr(KEY)


def test_frame_slices_find_dictionary_keys() -> None:
    assert {KEY.public: 1}[bytes(KEY.public)] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    ["", "nodekey:", "nodekey:" + "0" * 63, "nodekey:" + "g" * 64, "nodekey:" + " " * 64, "x:" + "0" * 64, "0" * 66],
)
def test_malformed_key_texts_are_rejected(text: str) -> None:
    with pytest.raises(CryptoError):
        PublicKey.from_text(text)
    with pytest.raises(CryptoError):
        PrivateKey.from_text(text)


def test_node_and_disco_keys_differ() -> None:
    with pytest.raises(CryptoError):
        PublicKey.from_disco_text(KEY.public.node_text)
    assert PublicKey.from_disco_text(KEY.public.disco_text) == KEY.public


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33)])
def test_keys_have_32_bytes(raw: bytes) -> None:
    for make in (PublicKey, PrivateKey, PublicKey.from_binary_untrusted):
        with pytest.raises(CryptoError):
            make(raw)


def test_low_order_points_are_rejected() -> None:
    for point in (PublicKey(bytes(32)), PublicKey(b"\x01" + bytes(31))):
        with pytest.raises(CryptoError):
            KEY.exchange(point)
        with pytest.raises(CryptoError):
            SharedBox(KEY, point)


def test_boxes_open_only_sealed_data() -> None:
    nonce = bytes(24)
    sealed = seal(KEY, OTHER.public, nonce, b"hello")
    assert open_untrusted(OTHER, KEY.public, nonce, sealed) == b"hello"
    for forged in (sealed[:-1], b"", sealed[:-1] + bytes((sealed[-1] ^ 1,)), bytes(16)):
        with pytest.raises(CryptoError):
            open_untrusted(OTHER, KEY.public, nonce, forged)
    with pytest.raises(CryptoError):
        open_untrusted(OTHER, KEY.public, nonce[:-1], sealed)
