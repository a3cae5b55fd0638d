"""Encryption of messages to browsers."""

from __future__ import annotations

from coder.domain.notifications import web_push as law


def test_the_example_of_rfc_8291() -> None:
    def decoded(text: str, length: int) -> bytes:
        return law.decode_key_untrusted(text, length)

    sender = law.private_key(decoded("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", 32))
    reader = decoded("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", 65)
    body = law.encrypt(
        b"When I grow up, I want to be a watermelon",
        reader,
        decoded("BTBZMqHH6r4Tts7J_aSIgg", 16),
        sender,
        decoded("DGv6ra1nlYgDCS1FRnbzlw", 16),
    )
    assert law.base64url(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBr"
        "u3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
