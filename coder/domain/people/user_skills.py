"""Skills: Markdown texts with a head of `name:` and `description:` lines between `---`, as agents read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CONTENT = 64 << 10
"""Ours: bytes of one skill."""
MAX_DESCRIPTION = 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class SkillHead:
    """Head of a skill, with its error."""

    name: str = ""
    description: str = ""
    fault: str = ""


def read_head(content: str) -> SkillHead:
    """Parse the head of a skill's text; `fault` is empty when it is valid."""
    if len(content.encode()) > MAX_CONTENT:
        return SkillHead(fault=f"must not exceed {MAX_CONTENT} bytes")
    lines = content.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        return SkillHead(fault="must begin with a head between two lines of ---")
    fields: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() == "---":
            break
        name, colon, value = line.partition(":")
        if colon and not name.startswith((" ", "#")):
            fields[name.strip()] = value.strip().strip("\"'")
    name, description = fields.get("name", ""), fields.get("description", "")
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        return SkillHead(name, description, "name must be lower-case letters, digits and single hyphens, at most 64")
    if not description or len(description) > MAX_DESCRIPTION:
        return SkillHead(name, description, f"description must be one line of 1 to {MAX_DESCRIPTION} characters")
    return SkillHead(name, description)
