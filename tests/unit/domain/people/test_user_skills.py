"""Heads of skills."""

from __future__ import annotations

from coder.domain.people.user_skills import read_head


def _skill(name: str = "review", description: str = "how to review") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nLook twice.\n"


def test_heads() -> None:
    assert (read_head(_skill()).name, read_head(_skill()).fault) == ("review", "")
    for wrong in ("", "no head", "---\nname: x\n", _skill("Bad Name"), _skill(description=""), "x" * 70000):
        assert read_head(wrong).fault, wrong[:20]
