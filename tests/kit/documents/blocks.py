"""Shell blocks of the documentation, and how each is checked.

A block (```sh, ```bash, ```console) is run line by line on a real deployment (`documents.run`), unless a comment in
front of it gives a reason:

    <!-- not run: root -->             the reason is a key of REASONS
    <!-- run: exit 1 -->               every line of the block ends with this status
    <!-- run: needs machine -->        anywhere in a page: the workspace hello-world with a connected machine
    <!-- run: needs last -->           the page changes the deployment for others
    <!-- run: first
    lines of a shell                   set-up that readers do not see, run before the next block
    -->

`<word>` in a line stands for the shell variable `word`, dashes as underscores; the set-up of the page defines it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REASONS = {
    "root": "needs root, a service manager or a reverse proxy of a machine to keep",
    "docker": "needs a Docker daemon",
    "cluster": "needs a Kubernetes cluster",
    "provider": "needs an account at another service",
    "tested": "has a test of its own on the built program",
    "build": "builds the program or runs the suite, which takes minutes",
    "workspace": "runs inside a workspace, with its agent's environment",
    "device": "needs a second machine, a desktop, or special hardware",
    "load": "loads a deployment with hundreds of users",
    "reference": "an example of the reference, parsed only: it changes something, or needs an object or another token",
}
"""Reasons for not running a block."""
_PART = re.compile(
    r"<!-- (?P<kind>not run|run): (?P<text>.*?)-->|^(?P<indent> *)```(?:sh|bash|console)\n(?P<body>.*?)^ *```",
    re.DOTALL | re.MULTILINE,
)
_PLACEHOLDER = re.compile(r"<([a-z][a-z-]*)>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
_WRAPPERS = {"sudo", "env", "exec", "nohup", "timeout", "time"}
GENERATED = ("reference/",)
"""Folders of generated pages: their blocks are parsed only, except the API's, which have directives."""


@dataclass(slots=True)
class Block:
    """A block with the directives that hold for it."""

    page: Path
    line: int
    body: str
    reason: str = ""
    exit: int = 0
    first: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the logical lines: joined at backslashes, open quotes and here-documents; no comments."""
        return list(_logical(self.body))


@dataclass(slots=True)
class Page:
    path: Path
    blocks: list[Block]
    needs: set[str]


class DirectiveError(ValueError):
    """A directive that nothing understands; the text names page and line."""


def _logical(body: str) -> Iterator[str]:
    held = ""
    for row in body.splitlines():
        row = row.strip() if not held else row.rstrip()
        held = f"{held}\n{row}" if held else row.removeprefix("$ ")
        if not _is_open(held):
            if held and not held.startswith("#"):
                yield held
            held = ""
    if held:
        yield held


def _is_open(text: str) -> bool:
    if document := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", text):
        return not re.search(rf"^\s*{document[1]}$", text, re.MULTILINE)
    if text.endswith("\\"):
        return True
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def read_page(path: Path, name: str) -> Page:
    """Return a page's blocks with their directives. Raises DirectiveError."""
    text = path.read_text()
    generated = name.startswith(GENERATED)
    blocks: list[Block] = []
    needs: set[str] = set()
    reason, status, first = "", 0, list[str]()
    for part in _PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["kind"] is None:
            body = "".join(row.removeprefix(part["indent"]) + "\n" for row in part["body"].splitlines())
            if generated and not name.startswith("reference/api/"):
                reason = "reference"
            blocks.append(Block(path, line, body, reason, status, first))
            reason, status, first = "", 0, []
            continue
        words = part["text"].strip()
        if part["kind"] == "not run":
            if words not in REASONS:
                raise DirectiveError(f"{path}:{line}: {words!r} is no reason; there are {', '.join(REASONS)}")
            reason = words
        elif words.startswith("exit "):
            status = int(words.removeprefix("exit "))
        elif words.startswith("needs "):
            needs |= set(words.removeprefix("needs ").split())
        elif words.startswith("first\n"):
            first = words.removeprefix("first\n").splitlines()
        else:
            raise DirectiveError(f"{path}:{line}: {words!r} is no directive")
    return Page(path, blocks, needs)


def commands_in(line: str) -> Iterator[list[str]]:
    """Return the words of each `coder` command in a logical line, without wrappers, assignments and `--help`."""
    line = line.partition("<<")[0]
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", ";"), posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    command: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("|&;()"):
            command.append(word)
            continue
        yield from _coder_words(command)
        command = []


def _coder_words(words: list[str]) -> Iterator[list[str]]:
    rest = list(words)
    while rest and (_ASSIGNMENT.fullmatch(rest[0]) or rest[0] in _WRAPPERS or rest[0].startswith("-")):
        if rest[0] == "sudo" and rest[1:2] == ["-u"]:
            rest = rest[2:]
        rest = rest[1:]
    if rest and Path(rest[0]).name == "coder":
        cut = next((index for index, word in enumerate(rest) if word in {">", "<", ">>", "2>"}), len(rest))
        yield [word for word in rest[1:cut] if word != "--help"]


def placeholders_as_variables(line: str) -> str:
    """Return the line with `<job-id>` as `"$job_id"`."""
    return _PLACEHOLDER.sub(lambda match: f'"${match[1].replace("-", "_")}"', line)


def pages(root: Path) -> list[Page]:
    """Return all pages of the documentation that have shell blocks."""
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    read = [
        read_page(path, path.relative_to(root / "docs").as_posix() if path.parent != root else "") for path in paths
    ]
    return [page for page in read if page.blocks]
