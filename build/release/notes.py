"""Release notes: the version's section of CHANGELOG.md, and how to verify the files."""

from __future__ import annotations

import re
from pathlib import Path

from release.plan import PROGRAMS, ROOT, Plan, write

CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "Unreleased"
NOTES = """# {version}

{changes}

## Files

{files}

## Verify

`coder verify FILE` checks a file next to `SHA256SUMS` and `SHA256SUMS.minisig`; so does
`minisign -Vm SHA256SUMS -P {key}`, followed by `sha256sum -c SHA256SUMS`.
{missing}"""


def build(plan: Plan, *, allow_unreleased: bool) -> Path:
    """Write RELEASE_NOTES.md and return its path. Raises SystemExit if the changelog has no section of the version."""
    text = CHANGELOG.read_text()
    changes = section(text, plan.version)
    if not changes and allow_unreleased:
        changes = section(text, UNRELEASED)
    if not changes:
        raise SystemExit(
            f"release: CHANGELOG.md has no section {plan.version}; "
            f"rename the section {UNRELEASED} in the release's commit"
        )
    names = sorted(path.relative_to(plan.out).as_posix() for path in plan.out.iterdir() if path.is_file())
    absent = [name for name in PROGRAMS if name not in plan.programs]
    missing = f"\nNot in this release: {', '.join(absent)}.\n" if absent else ""
    files = "\n".join(f"- `{name}`" for name in names)
    fields = {"version": plan.version, "changes": changes, "files": files, "key": plan.key.public_line}
    return write(plan.out / "RELEASE_NOTES.md", NOTES.format(**fields, missing=missing))


def section(changelog: str, version: str) -> str:
    """Return the text of a version's section, without its title; empty if there is none."""
    parts = re.split(r"(?m)^## (.*)$", changelog)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title.split(" ")[0].strip("[]v") == version:
            return body.strip()
    return ""
