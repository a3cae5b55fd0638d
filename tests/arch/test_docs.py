"""Documents are checked like code: paths and links exist, commands and flags parse, generated pages are current."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.documents.blocks import commands_in, placeholders_as_variables, read_page

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(r"`((?:coder|scripts|tests|docs|build|\.ci)/[\w./*<>-]+)`")
PROVIDER = "coder/coder"  # a name in Terraform's registry, no path
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SOURCES = {"", ".py", ".sh", ".c", ".h", ".yaml", ".ps1", ".tf"}
BADLY_INDENTED = re.compile(r"^ {1,3}(?:```|\| ).*", re.MULTILINE)
VARIABLE = re.compile(r"\bCODER_[A-Z0-9_]+[A-Z0-9]\b(?![_…*])")

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


def commands_of(document: Path) -> list[tuple[str, list[str]]]:
    """Return every `coder` command of the shell blocks: its line, and its words without assignments and wrappers."""
    relative = document.relative_to(ROOT / "docs").as_posix() if ROOT / "docs" in document.parents else ""
    lines = [line for block in read_page(document, relative).blocks for line in block.lines()]
    return [(line, words) for line in lines for words in commands_in(placeholders_as_variables(line))]


@each_document
def test_lists_indent_their_blocks(document: Path) -> None:
    """Python-Markdown takes a table or a fence into a list item only behind four blanks."""
    if ROOT / "docs" in document.parents:
        assert not BADLY_INDENTED.findall(document.read_text())


@each_document
def test_numbered_lists_are_not_interrupted(document: Path) -> None:
    """Python-Markdown numbers a list behind a paragraph from 1, whatever its number."""
    text = re.sub(r"^( *)```.*?^ *```\n", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in re.split(r"\n[ \t]*\n", text) if block.strip()]
    for before, block in pairwise(blocks):
        if re.match(r"(?!1\.)\d+\. ", block.lstrip("\n")):
            assert re.match(r"\d+\. | {4}", before.lstrip("\n")), block


@each_document
def test_shown_commands_are_understood(document: Path) -> None:
    """Parsed by the program's own parser, without running anything. An ellipsis or `<word>` stands for any argument."""
    from coder.base.errors import CoderError
    from coder.cli.core.command import choose, load
    from coder.cli.core.command_table import COMMANDS
    from coder.cli.core.parsing import parse

    misunderstood = []
    for line, words in commands_of(document):
        name, rest = choose(words)
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


def test_generated_reference_is_current() -> None:
    """In a process of its own: it imports the whole server."""
    command = [sys.executable, "-m", "scripts.reference", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
COMPOSED_MESSAGES = {
    "the original's database failed",
    "the database to import into failed",
    "The database does not answer.",
    "The database has no memory left.",
    "… accepts no more connections.",
    "… lacks a resource of its machine.",
}
"""Messages that the code puts together from a subject and a table of faults."""
_CONTINUED = re.compile(r'"\s*\n\s*f?"')


WITH_MESSAGES = ("troubleshooting", "sign-in", "mail", "migrating", "workspace-proxies")
"""Guides whose tables begin with a message."""


def _quoted_messages() -> list[str]:
    """Return the messages that the first columns of the guides quote."""
    rows = [row for name in WITH_MESSAGES for row in (ROOT / f"docs/guides/{name}.md").read_text().splitlines()]
    cells = (row.split("|")[1] for row in rows if row.startswith("|"))
    return [message for cell in cells for message in re.findall(r"`([^`]+ [^`]+)`", cell)]


MISSPELT = {"CODER_URLL", "CODER_ACESS_URL"}
"""Variables of examples of mistakes."""


def test_named_variables_exist() -> None:
    """A variable in a document is an option's, or code reads it."""
    from coder.cli.core.command import load
    from coder.cli.core.command_table import COMMANDS
    from coder.cli.core.options import GLOBAL_OPTIONS
    from coder.coderd.config.options import OPTIONS

    known = {item.env for item in (*GLOBAL_OPTIONS, *OPTIONS)}
    known |= {item.env for words in COMMANDS for item in load(words).options}
    named = {name for document in DOCUMENTS for name in VARIABLE.findall(document.read_text())} - known - MISSPELT
    unknown = {name for name in named if not name.startswith("CODER_EXTERNAL_AUTH_")}
    folders = (
        ROOT / name
        for name in (
            "coder/base",
            "coder/agent",
            "coder/cli",
            "coder/coderd",
            "coder/net",
            "coder/provisionerd",
            "build",
            "scripts",
            "tests",
        )
    )
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file()]
    for path in sources:
        if unknown and "node_modules" not in path.parts:
            text = path.read_text(errors="replace")
            unknown = {name for name in unknown if name not in text}
    assert not unknown


def test_quoted_messages_exist() -> None:
    """An ellipsis or a number in a quote stands for a value."""
    sources = [*(ROOT / "coder").rglob("*.py"), *(ROOT / "build").glob("*.[ch]")]
    code = _CONTINUED.sub("", "\n".join(path.read_text() for path in sources if "node_modules" not in path.parts))
    messages = _quoted_messages()
    assert len(messages) >= 15
    missing = []
    for message in set(messages) - FOREIGN_MESSAGES - COMPOSED_MESSAGES:
        parts = [part.strip() for part in re.split(r"…|[\d-]+", message)]
        missing += [message] if not all(part in code for part in parts) else []
    assert not missing
