"""What looks like something signed or secret, and is not."""

from __future__ import annotations


def forged(text: str) -> str:
    """The same with one letter changed, which stands where it counts: base64 ignores some bits of a last letter, and a
    letter that is always the same is now and then the right one."""
    at = len(text) - 8
    return text[:at] + ("B" if text[at] != "B" else "C") + text[at + 1 :]
