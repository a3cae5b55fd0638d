"""Password strength: the entropy as upstream counts it, and the refusal text.

entropy = log2(base ** length): `base` grows with the kinds of characters used, `length` counts neither the third and
later of repeated characters nor the inside of runs such as abc, 123 or qwerty. Source:
docs/protocol/rest.md#common-rules.
"""

from __future__ import annotations

import math

MIN_ENTROPY_BITS = 52
MAX_LENGTH = 64

_REPLACE = set("!@$&*")
_SEPARATORS = set("_-., ")
_OTHER = set("\"#%'()+/:;<=>?[\\]^{|}~`")
_LOWER = set("abcdefghijklmnopqrstuvwxyz")
_UPPER = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = set("0123456789")
_GROUPS = (_REPLACE, _SEPARATORS, _OTHER, _LOWER, _UPPER, _DIGITS)
_RUNS = ("0123456789", "qwertyuiop", "asdfghjkl", "zxcvbnm", "abcdefghijklmnopqrstuvwxyz")


def explain_password(password: str) -> str:
    """Return why `password` is refused; empty when it is good."""
    if len(password) > MAX_LENGTH:
        return f"password must be no more than {MAX_LENGTH} characters"
    if entropy_bits(password) >= MIN_ENTROPY_BITS:
        return ""
    used = set(password)
    advice = []
    if not (used & _REPLACE and used & _SEPARATORS and used & _OTHER):
        advice.append("including more special characters")
    advice += [
        f"using {name}"
        for name, group in (("lowercase letters", _LOWER), ("uppercase letters", _UPPER), ("numbers", _DIGITS))
        if not used & group
    ]
    if not advice:
        return "insecure password, try using a longer password"
    return f"insecure password, try {', '.join(advice)} or using a longer password"


def entropy_bits(password: str) -> float:
    """Return the upper bound of bits an attacker has to guess."""
    used = set(password)
    base = sum(len(group) for group in _GROUPS if used & group) + len(used - set().union(*_GROUPS))
    return _length(password) * math.log2(base) if base > 1 else 0.0


def _length(password: str) -> int:
    text = _without_repeats(password)
    for run in _RUNS:
        text = _without_run(text, run)
        text = _without_run(text, run[::-1])
    return len(text)


def _without_repeats(text: str) -> str:
    kept: list[str] = []
    for char in text:
        if len(kept) >= 2 and kept[-1] == char and kept[-2] == char:
            continue
        kept.append(char)
    return "".join(kept)


def _without_run(text: str, run: str) -> str:
    """Drop the characters that continue a run of two already kept from `run`; they do not count."""
    kept: list[str] = []
    lowered = text.lower()
    matched = ""
    for index, char in enumerate(lowered):
        if matched and matched + char in run:
            matched += char
        else:
            matched = char if char in run else ""
        if len(matched) <= 2:
            kept.append(text[index])
    return "".join(kept)
