"""Whoever follows a citation arrives: it names a path in this repository or a public standard that is listed.

Read is every text that is ours: the comments of each language, Python's docstrings, and pages as they are. A path may
be shortened from the left (`tunnel/timers.py`), its end has to exist; behind `#` stands a heading of a page. RFCs are
listed in `docs/protocol/standards.md`; "section 4" alone is no citation unless the file says of what.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = re.compile(
    r"^tests/data/|^LICENSE$|(?:^|/)package-lock\.json$|_pb2\.pyi?$|\.jpg$"
    r"|^coder/dashboard/src/api/types\.ts$|^coder/provisionerd/terraform/provider/proto/tfplugin5\.proto$"
)
"Recorded, generated, pictures, and what others wrote."
STANDARDS = ROOT / "docs/protocol/standards.md"

PATH = re.compile(
    r"(?<![\w./:@{$%-])((?:[\w-]+/)+[\w.-]+\.(?:py|md|json|jsonl|tsx?|m?js|css|html|[ch]|proto|tsv|toml|ya?ml|sh|spec))"
    r"(?:#([\w-]+))?(?![\w/*<])"
)
COMMAND = re.compile(r"(?<![\w./:@{$%-])(?:\./)?(scripts/[\w-]+)(?![\w./*<{-]*[\w/*<{])")
"A command of ours, by its path: `scripts/fmt`."
RFC = re.compile(r"\bRFC ?(\d+)")
SECTION = re.compile(r"\b[Ss]ections? \d|§ ?\d")
PUBLIC = re.compile(r"RFC ?\d+|WireGuard paper|Noise|\bdraft\b|docs/[\w/-]+\.md")
INSIDE = re.compile(r"`((?:\w+/)+\w+)\.([A-Za-z_]\w*)`")
"A name in a file: `services/access/keys.find`."
ROOMS = re.compile(r"`(?:domain|store|services|http|loops|apps)\.[a-z_]+\.\w+`")
"A dotted module is no path: nobody can open it."
NEIGHBOUR = re.compile(r"(?<![\w./*-])([a-z_][\w-]*\.(?:py|c|h|ts|tsx|sh|spec))\b")
"A bare file name in a module's docstring or a comment: it stands in the same folder, or nobody knows which is meant."
RETIRED = re.compile(
    r"rpc-framing|agent-proto|tailnet-proto|derp-disco|product[\s#]+map|reference,[\s#]+section"
    r"|(?:agent|protocol|services) document",
    re.I,
)
"Names of notes that are not in the repository; what they said is in docs/protocol."

MADE_AT_RUN_TIME = re.compile(
    r"^(?:files/|\.terraform/|dist/|\.git/|google/protobuf/|linux/)|settings\.json$|modules\.json$"
)
"What looks like a path and is one in a workspace, an archive, a build, a library or a kernel."

STRING_OR_COMMENT = re.compile(
    r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|//([^\n]*)|/\*(.*?)\*/""", re.DOTALL
)
"Strings first: a glob may hold what begins a comment."
HASH = re.compile(r"(?:^|(?<=\s))#(?!!)([^\n]*)|\{\{-?\s*/\*(.*?)\*/", re.MULTILINE | re.DOTALL)
MARKUP = re.compile(r"<!--(.*?)-->", re.DOTALL)


def _files() -> list[str]:
    """Of the repository, and those that will be when they are added."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted(line for line in set(listed.splitlines()) if (ROOT / line).is_file())


FILES = _files()
TEXTS = [ROOT / name for name in FILES if not NOT_OURS.search(name)]


@cache
def tracked() -> frozenset[str]:
    """Every file, and each with its path cut from the left."""
    names: set[str] = set()
    for line in FILES:
        parts = line.split("/")
        names.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset(names)


@cache
def headings(page: Path) -> frozenset[str]:
    """Anchors as forges make them: lower case, blanks to hyphens, everything else gone."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return frozenset(re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles)


def _python(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _slashes(text: str) -> Iterator[str]:
    for _, line, block in STRING_OR_COMMENT.findall(text):
        yield line or block


def _hashes(text: str) -> Iterator[str]:
    for line, block in HASH.findall(text):
        yield line or block


def _all(text: str) -> Iterable[str]:
    return [text]


def _none(text: str) -> Iterable[str]:
    return []


READERS: dict[Callable[[str], Iterable[str]], str] = {
    _python: ".py .pyi",
    _slashes: ".c .h .ts .tsx .js .mjs .css .proto",
    # What has no suffix is a script, a Dockerfile or a list of names to leave out.
    _hashes: ".sh .yaml .yml .toml .tf .service .env .spec .mako .tpl .gitignore .prettierignore .editorconfig NONE",
    MARKUP.findall: ".html .svg",
    _all: ".md .txt .tsv",
    _none: ".json",
}
READER = {suffix: reader for reader, suffixes in READERS.items() for suffix in suffixes.split()}


def suffix_of(path: Path) -> str:
    return path.suffix or (path.name if path.name.startswith(".") else "NONE")


def prose_of(path: Path) -> str:
    """What is said to people."""
    return "\n".join(READER[suffix_of(path)](path.read_text()))


def wrong_in(path: Path) -> list[str]:
    rules = (PATH, COMMAND, INSIDE, ROOMS, RFC, SECTION, RETIRED, NEIGHBOUR)
    if not any(rule.search(path.read_text()) for rule in rules):
        return []  # most files: nothing to parse
    prose = prose_of(path)
    wrong = []
    for name, anchor in PATH.findall(prose):
        if MADE_AT_RUN_TIME.search(name):
            continue
        if name not in tracked() or (anchor and anchor not in headings(ROOT / name)):
            wrong.append(f"{name}#{anchor}")
    wrong += [name for name in COMMAND.findall(prose) if name not in tracked()]
    inside = [found for found in INSIDE.findall(prose) if ".".join(found) not in tracked()]
    wrong += [f"{name}.{word}" for name, word in inside if f"{name}.py" not in tracked()]
    wrong += ROOMS.findall(prose) if path != Path(__file__) else []
    wrong += [f"RFC {number}" for number in RFC.findall(prose) if number not in listed()]
    wrong += RETIRED.findall(prose) if path != Path(__file__) else []
    wrong += neighbours_missing(path)
    if path.suffix != ".md" and SECTION.search(prose) and not PUBLIC.search(prose):
        wrong.append("a section of nothing that is named")
    return wrong


def neighbours_missing(path: Path) -> list[str]:
    if path.suffix == ".py":
        others = [ROOT / room for room in ("tests", "scripts", "build")]
        if any(path.is_relative_to(room) for room in others):
            return []
        said = ast.get_docstring(ast.parse(path.read_text())) or ""
    else:
        said = "" if READER[suffix_of(path)] is _all else prose_of(path)
    return [name for name in NEIGHBOUR.findall(said) if not (path.parent / name).exists()]


@cache
def listed() -> frozenset[str]:
    return frozenset(re.findall(r"^\| (\d+) \|", STANDARDS.read_text(), re.M))


def test_dead_ends_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text(
        '"""See rooms/of_nobody.py, docs/protocol/rpc.md#nothing, RFC 1 and the product map; section 3."""\n'
    )
    assert wrong_in(page) == ["rooms/of_nobody.py#", "docs/protocol/rpc.md#nothing", "RFC 1", "product map"]
    page.write_text('"""As `rooms/nobody.does` and `store.jobs.take` say (product\nmap)."""\n')
    assert wrong_in(page) == ["rooms/nobody.does", "`store.jobs.take`", "product\nmap"]
    page.write_text('"""What page.py does not say is in nowhere.py."""\n')
    assert wrong_in(page) == ["nowhere.py"]
    page.write_text("# as in section 3\n")
    assert wrong_in(page) == ["a section of nothing that is named"]


def test_comment_syntax_of_each_language(tmp_path: Path) -> None:
    said = {
        "page.c": 'char *glob = "/*"; // see gone/one.c\n/* and\n * gone/two.h */ char *name = "gone/three.c";\n',
        "page.tsx": "const glob = `src/**/*.ts`; // gone/four.ts, as scripts/five says\n",
        "page.yaml": "name: gone/six.yaml # of gone/seven.yaml\n",
        "page.tpl": "{{- /* see gone/eight.py */ -}}\ngone/nine.py\n",
        "page.svg": "<svg><!-- drawn by gone/ten.py --></svg>\n",
        "page": "#!/bin/sh\n. gone/eleven.sh # RFC 1, eleven.sh\n",
        "page.tsv": "gone/twelve.py\n",
        "page.json": '{"path": "gone/thirteen.py"}\n',
    }
    found = {}
    for name, text in said.items():
        (tmp_path / name).write_text(text)
        found[name] = wrong_in(tmp_path / name)
    assert found == {
        "page.c": ["gone/one.c#", "gone/two.h#"],
        "page.tsx": ["gone/four.ts#", "scripts/five"],
        "page.yaml": ["gone/seven.yaml#"],
        "page.tpl": ["gone/eight.py#"],
        "page.svg": ["gone/ten.py#"],
        "page": ["RFC 1", "eleven.sh"],
        "page.tsv": ["gone/twelve.py#"],
        "page.json": [],
    }


def test_every_file_type_has_reader() -> None:
    unread = {suffix_of(path) for path in TEXTS} - set(READER)
    assert not unread, "say how these are commented, or that they are not ours"


ROOMS_OF_TEXT = sorted({path.relative_to(ROOT).parts[0] if path.parent != ROOT else "." for path in TEXTS})


@pytest.mark.parametrize("room", ROOMS_OF_TEXT)
def test_citations_lead_somewhere(room: str) -> None:
    texts = [path for path in TEXTS if room in (path.relative_to(ROOT).parts[0], str(path.parent.relative_to(ROOT)))]
    wrong = {str(path.relative_to(ROOT)): found for path in texts if (found := wrong_in(path))}
    assert not wrong


def test_listed_standards_are_cited() -> None:
    texts = [path for path in TEXTS if path != STANDARDS and RFC.search(path.read_text())]
    assert listed() <= {number for path in texts for number in RFC.findall(prose_of(path))}
