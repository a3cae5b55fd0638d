"""Measures how tidy the sources are: `scripts/lint --report` prints one line for each point.

A point is a function without arguments that returns a number, where less is better. `POINTS` names them;
`tests/arch/test_lint_report.py` holds each at a ceiling that may only fall.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DASHBOARD = ROOT / "coder/dashboard"
LONGEST_LINE = 140
LONGEST_FILE = 300
LONGEST_SUBJECT = 72
PYTHON_ROOMS = ("coder", "tests", "scripts", "build")
_SUBJECTS_SINCE = "2026-11-28T00:00:00+00:00"
_DIRECTIVE = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")
GENERATED = frozenset({"src/api/types.ts"})
_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']+)["']""")
WORDS = ("whoever", "nobody", "somebody", "anew")
"""Words that hide the actor or repeat an old form; `docs/style.md` names what to write instead."""
_OPENINGS = frozenset(
    "what who whoever whose whom which that this these those it its they them their he she we you one ones of none "
    "nobody somebody everybody everything something nothing anything such as at by for from in into "
    "on to with without after before beside until when where while why how if so and or but not only also".split()
)
"""A docstring that begins with one of these has no subject and no verb in front."""
_SUFFIXES = ("", ".ts", ".tsx", "/index.ts", "/index.tsx")


def dashboard_long_lines() -> int:
    """Count the lines of the dashboard's sources that are longer than `LONGEST_LINE` columns."""
    texts = (path.read_text("utf-8") for path in _dashboard_sources() if _name(path) not in GENERATED)
    return sum(len(line) > LONGEST_LINE for text in texts for line in text.splitlines())


def dashboard_long_files() -> int:
    """Count the dashboard's sources, tests included, that have more than `LONGEST_FILE` lines."""
    texts = (path.read_text("utf-8") for path in _dashboard_sources() if _name(path) not in GENERATED)
    return sum(len(text.splitlines()) > LONGEST_FILE for text in texts)


def dashboard_cross_page_imports() -> int:
    """Count the imports of a page by a page of another area."""
    places = ((_place(one), _place(other)) for one, other in _dashboard_imports())
    return sum(one[0] == other[0] == "pages" and one[1] != other[1] for one, other in places)


def dashboard_upward_imports() -> int:
    """Count the imports of a room or a feature that `rooms.json` has further up. Tests over several rooms are free."""
    return sum(_is_upward(_place(one), _place(other)) for one, other in _dashboard_imports())


def dashboard_import_circles() -> int:
    """Count the groups of files that import each other, directly or through others."""
    imports: dict[str, set[str]] = {_name(path): set() for path in _dashboard_sources()}
    for one, other in _dashboard_imports():
        imports[one].add(other)
    return len(circles(imports))


def formatter_directives() -> int:
    """Count the places where Python sources tell the formatter to leave a table alone."""
    texts = (path.read_text("utf-8") for room in PYTHON_ROOMS for path in (ROOT / room).rglob("*.py"))
    return sum(len(_DIRECTIVE.findall(text)) for text in texts)


def names_used_by_services() -> int:
    """Return how many of our names from other modules a services file uses, at the 90th percentile of files.

    `module.name` counts as one name each, as does a name that is imported by itself.
    """
    counts = sorted(len(_names_used(path)) for path in (ROOT / "coder/coderd/services").rglob("*.py"))
    return counts[int(len(counts) * 0.9)]


def cli_imports_inside_functions() -> float:
    """Return the imports inside functions of the command line, in a thousand lines."""
    return _per_thousand_lines("cli", _imports_inside_functions)


def explicit_any(package: str = "") -> float:
    """Return the uses of `Any`, `object` and `cast`, in a thousand lines of a package; of the product without one.

    `object` and casts count because they can stand for `Any`. Generated messages and migrations do not count.
    """
    return _per_thousand_lines(package, _explicit_any)


def _per_thousand_lines(package: str, count: Callable[[ast.AST], int]) -> float:
    paths = [path for path in (ROOT / "coder" / package).rglob("*.py") if _is_written(path) and _is_current(path)]
    texts = [path.read_text("utf-8") for path in paths]
    lines = sum(len(text.splitlines()) for text in texts)
    return round(1000 * sum(count(ast.parse(text)) for text in texts) / lines, 1)


def _is_current(path: Path) -> bool:
    return "migrations" not in path.relative_to(ROOT).parts


def _imports_inside_functions(tree: ast.AST) -> int:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {node for function in functions for node in ast.walk(function)}
    return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in inside)


def _explicit_any(tree: ast.AST) -> int:
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return sum(node.id in {"Any", "object", "cast"} for node in names)


def prose_word(word: str) -> int:
    """Count `word` in the product, the dashboard and the documents, in any case, tests excluded."""
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    return sum(len(pattern.findall(path.read_text("utf-8"))) for path in _prose_sources())


def docstrings_without_subject() -> int:
    """Return how many of a thousand docstrings begin with a word of `_OPENINGS`. Tests and generated files excluded."""
    words = [words for path in _product_sources() for words in _docstring_openings(path)]
    return round(1000 * sum(word in _OPENINGS for word in words) / len(words))


def test_name_words_median() -> int:
    """Return the median number of words in the names of tests; `test` itself does not count."""
    counts = _test_name_words()
    return counts[len(counts) // 2]


def test_name_words_most() -> int:
    """Return the number of words in the longest name of a test."""
    return _test_name_words()[-1]


def longest_changelog_section() -> int:
    """Count the lines of the changelog's longest section (`## …`), blank lines included."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    return max(len(section.rstrip().splitlines()) for section in sections)


def long_commit_subjects() -> int:
    """Count the commit subjects over `LONGEST_SUBJECT` columns since the rule was made. Needs git and the history."""
    subjects = subprocess.run(
        ["git", "log", f"--since={_SUBJECTS_SINCE}", "--format=%s"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sum(len(subject) > LONGEST_SUBJECT for subject in subjects.splitlines())


def _names_used(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names: set[str] = set()
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("coder."):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if _is_module(name):
                    modules[alias.asname or alias.name] = name
                else:
                    names.add(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            names.add(f"{modules[node.value.id]}.{node.attr}")
    return names


@cache
def _product_sources() -> tuple[Path, ...]:
    sources = (path for room in ("coder", "scripts", "build") for path in (ROOT / room).rglob("*.py"))
    return tuple(sorted(path for path in sources if _is_written(path)))


@cache
def _prose_sources() -> tuple[Path, ...]:
    """Return what carries our own prose: sources, scripts without an extension, pages and documents."""
    dashboard = (path for path in _dashboard_sources() if _name(path) not in GENERATED)
    scripts = (path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix not in {".py", ".txt"})
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    return (*_product_sources(), *dashboard, *scripts, *documents)


def _is_written(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    generated = path.name.endswith("_pb2.py") or "node_modules" in parts or "dist" in parts
    return not generated and parts[:2] != ("coder", "dashboard")


def _docstring_openings(path: Path) -> Iterator[str]:
    """Yield the first word of each docstring, in lower case. Strings below constants and fields count as docstrings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        for block in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            for statement in block if isinstance(block, list) else ():
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        if word := re.match(r"\W*(\w+)", text):
                            yield word[1].lower()


@cache
def _test_name_words() -> tuple[int, ...]:
    pattern = re.compile(r"^\s*(?:async )?def test_(\w+)", re.MULTILINE)
    names = (name for path in (ROOT / "tests").rglob("*.py") for name in pattern.findall(path.read_text("utf-8")))
    return tuple(sorted(len(name.strip("_").split("_")) for name in names))


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or path.is_dir()


POINTS: dict[str, Callable[[], float]] = {
    "dashboard: lines over 140 columns": dashboard_long_lines,
    "dashboard: files over 300 lines": dashboard_long_files,
    "dashboard: imports between areas of pages": dashboard_cross_page_imports,
    "dashboard: upward imports": dashboard_upward_imports,
    "dashboard: import circles": dashboard_import_circles,
    "python: places the formatter leaves alone": formatter_directives,
    "python: names a services file uses of others, p90": names_used_by_services,
    "cli: imports inside functions, of 1000 lines": cli_imports_inside_functions,
    "cli: explicit Any, object and casts, of 1000 lines": partial(explicit_any, "cli"),
    "python: explicit Any, object and casts, of 1000 lines": explicit_any,
    **{f"prose: “{word}”": partial(prose_word, word) for word in WORDS},
    "prose: docstrings without a subject, of 1000": docstrings_without_subject,
    "tests: words in a name, median": test_name_words_median,
    "tests: words in a name, most": test_name_words_most,
    "changelog: lines of the longest section": longest_changelog_section,
    "commits: subjects over 72 columns": long_commit_subjects,
}


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one file, and files that import themselves."""
    below = {name: _reachable(name, imports) for name in imports}
    groups = {frozenset(other for other in below[name] if name in below[other]) for name in imports}
    return [set(group) for group in groups if group]


def _reachable(start: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports.get(name, ())
    return found


@cache
def _rooms() -> tuple[list[str], list[str]]:
    """Return the rooms and the features, each from top to bottom."""
    order = json.loads((DASHBOARD / "rooms.json").read_text())
    return order["rooms"], order["features"]


def _place(name: str) -> tuple[str, str]:
    """Return the room and the area of a source. What lies beside the rooms belongs to the application."""
    _, room, *rest = name.split("/")
    return (room if room in {*_rooms()[0], "test"} else "app"), rest[0] if rest else ""


def _is_upward(one: tuple[str, str], other: tuple[str, str]) -> bool:
    rooms, features = _rooms()
    if "test" in {one[0], other[0]}:
        return False
    if one[0] == other[0] == "features":
        return features.index(other[1]) < features.index(one[1])
    return rooms.index(other[0]) < rooms.index(one[0])


@cache
def _dashboard_sources() -> tuple[Path, ...]:
    return tuple(sorted(path for path in (DASHBOARD / "src").rglob("*.*") if path.suffix in {".ts", ".tsx", ".css"}))


@cache
def _dashboard_imports() -> tuple[tuple[str, str], ...]:
    """Return each import between two sources, once."""
    return tuple(sorted({pair for path in _dashboard_sources() for pair in _imports_of(path)}))


def _imports_of(path: Path) -> Iterator[tuple[str, str]]:
    names = {_name(other) for other in _dashboard_sources()}
    for specifier in _IMPORT.findall(path.read_text("utf-8")):
        bare = os.path.normpath(path.parent.relative_to(DASHBOARD) / specifier)
        found = next((bare + suffix for suffix in _SUFFIXES if bare + suffix in names), None)
        if found is not None:
            yield _name(path), found


def _name(path: Path) -> str:
    return path.relative_to(DASHBOARD).as_posix()


if __name__ == "__main__":
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(f"at {commit.stdout.strip() or 'no commit'}")
    for point, measure in POINTS.items():
        print(f"{measure():6g}  {point}")
