"""Documents are checked like code: paths and links exist, commands and flags parse, generated pages are current."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(r"`((?:coder|scripts|tests|docs|build|\.ci)/[\w./*<>-]+)`")
PROVIDER = "coder/coder"  # a name in Terraform's registry, no path
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SHELL_BLOCK = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@each_document
def test_named_files_exist(document: Path) -> None:
    names = set(PATH.findall(document.read_text())) - {PROVIDER}
    placed = {name.rstrip("/") for name in names if "<" not in name}
    missing = {name for name in placed if not any(ROOT.glob(name))}
    assert not missing


NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@each_document
def test_named_tests_exist(document: Path) -> None:
    named = set(NAMED_TEST.findall(document.read_text()))
    assert not [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]


@each_document
def test_relative_links_lead_somewhere(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    assert not [target for target in targets if not (document.parent / target).exists()]


def commands_of(document: Path) -> list[str]:
    """Every line of a shell block that runs `coder`, continuation lines joined."""
    blocks = "".join(SHELL_BLOCK.findall(document.read_text())).replace("\\\n", " ")
    lines = [line.split(" | ")[-1].strip().removeprefix("$ ") for line in blocks.splitlines()]
    return [line for line in lines if line.startswith("coder ")]


@each_document
def test_shown_commands_are_understood(document: Path) -> None:
    """Parsed by the program's own parser, without running anything. An ellipsis or `<word>` stands for any argument."""
    from coder.base.errors import CoderError
    from coder.cli.core.command import choose, load
    from coder.cli.core.command_table import COMMANDS
    from coder.cli.core.parsing import parse

    misunderstood = []
    for line in commands_of(document):
        name, rest = choose(shlex.split(line, comments=True)[1:])
        if name is None or name not in COMMANDS:
            misunderstood.append(line)
            continue
        try:
            parse(load(name), rest, {})
        except CoderError as error:
            misunderstood.append(f"{line}: {error.message}")
    assert not misunderstood


def test_generated_diagrams_are_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts/diagrams.py"), "--check"], check=False)
    assert done.returncode == 0, "run scripts/generate-diagrams"


def test_folder_index_lists_every_page() -> None:
    folder = ROOT / "docs/decisions"
    listed = set(LINK.findall((folder / "README.md").read_text()))
    assert {path.name for path in folder.glob("*.md")} - {"README.md"} <= listed


DECISIONS = sorted(path for path in (ROOT / "docs/decisions").glob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_status_and_index_entry(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert re.fullmatch(r"Status: (in force|replaced by \[[\w-]+\]\([\w-]+\.md\))\. Taken \d{4}-\d\d-\d\d\.", lines[2])
    assert f"]({page.name})" in (page.parent / "README.md").read_text()


FOREIGN_MESSAGES = {"address already in use", "Failed to query available provider packages"}
"""Messages of the system and of Terraform."""
_CONTINUED = re.compile(r'"\s*\n\s*f?"')


def _quoted_messages() -> list[str]:
    """Return the messages that the first column of the troubleshooting guide quotes."""
    rows = (ROOT / "docs/guides/troubleshooting.md").read_text().splitlines()
    cells = (row.split("|")[1] for row in rows if row.startswith("|"))
    return [message for cell in cells for message in re.findall(r"`([^`]+ [^`]+)`", cell)]


def test_quoted_messages_exist() -> None:
    """An ellipsis or a number in a quote stands for a value."""
    sources = [*(ROOT / "coder").rglob("*.py"), *(ROOT / "build").glob("*.[ch]")]
    code = _CONTINUED.sub("", "\n".join(path.read_text() for path in sources if "node_modules" not in path.parts))
    messages = _quoted_messages()
    assert len(messages) >= 15
    missing = []
    for message in set(messages) - FOREIGN_MESSAGES:
        parts = [part.strip() for part in re.split(r"…|[\d-]+", message)]
        missing += [message] if not all(part in code for part in parts) else []
    assert not missing
