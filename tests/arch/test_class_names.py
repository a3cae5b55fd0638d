"""One name, one class: a reader who searches for a public class of the product finds one.

Counted is every class outside of functions whose name has no underscore before it, generated messages apart. The
settings of the server end on `Settings`, because the API has published names on `Config` for some of the same concerns.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for path in (ROOT / "coder").rglob("*.py") if "_pb2" not in path.name and "node_modules" not in path.parts
]


def public_classes(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue  # what a function names is seen by nobody else
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        yield from public_classes(ast.iter_child_nodes(node))


def named_twice(texts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name, text in texts:
        for one in public_classes(ast.parse(text).body):
            found[one].append(name)
    return {name: files for name, files in found.items() if len(files) > 1}


def test_no_two_public_classes_share_a_name() -> None:
    assert not named_twice((str(path.relative_to(ROOT)), path.read_text()) for path in SOURCES if path.stat().st_size)


def test_a_second_class_is_found() -> None:
    one = "class Reader: ...\nclass _Own: ...\ndef make():\n    class Local: ...\n"
    other = "class _Own: ...\nif True:\n    class Reader: ...\ndef make():\n    class Local: ...\n"
    assert named_twice([("one.py", one), ("other.py", other)]) == {"Reader": ["one.py", "other.py"]}
