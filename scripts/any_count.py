"""Count explicit `Any` in coder/, and the types that stand for it: `python scripts/any_count.py [--list] [ROOM …]`.

Counted are `Any` wherever it is written (annotations, also as strings, aliases, casts), uses of an alias of nothing but
`Any` or `object`, `object` as the type of a value, and casts to a type that contains one of them. `object` is no
substitute where nothing is read from the value: operands of comparisons, results that a caller drops (`Callable[…,
object]`, `Awaitable[object]`), and parameters whose names begin with an underscore.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = 2.5
"""Places per 1,000 lines, over the whole of coder/."""
_DROPPED = {"Callable": -1, "Awaitable": 0, "Coroutine": -1, "CoroutineFunction": -1}
"""Generic types, and the argument of each that is the type of a result."""


def python_sources(root: Path = ROOT / "coder") -> list[Path]:
    """Return the written Python files: no generated messages, migrations or packages of the dashboard."""
    return sorted(
        path
        for path in root.rglob("*.py")
        if not path.stem.endswith("_pb2") and not {"node_modules", "versions"} & set(path.parts)
    )


def places(source: str) -> list[tuple[int, int, str]]:
    """Return (line, column, name) of every `Any` and of everything in a file that stands for it."""
    visitor = _Visitor(_aliases(ast.parse(source)))
    visitor.visit(ast.parse(source))
    return sorted(set(visitor.places))


def any_per_thousand_lines() -> float:
    """Return the places of all rooms, per 1,000 lines."""
    texts = [path.read_text("utf-8") for path in python_sources()]
    return 1000 * sum(len(places(text)) for text in texts) / sum(text.count("\n") for text in texts)


def _aliases(tree: ast.Module) -> frozenset[str]:
    """Return the names that a file defines as nothing but `Any` or `object`."""
    return frozenset(
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in {"Any", "object"}
        for target in node.targets
        if isinstance(target, ast.Name)
    )


class _Visitor(ast.NodeVisitor):
    def __init__(self, aliases: frozenset[str]) -> None:
        self.aliases = aliases
        self.places: list[tuple[int, int, str]] = []

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == "Any" or (node.id in self.aliases and isinstance(node.ctx, ast.Load)):
            self._add(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == "Any" and isinstance(node.value, ast.Name) and node.value.id in {"typing", "t"}:
            self._add(node, "Any")
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation is not None:
            self._annotation(node.annotation, unused=node.arg.startswith("_"))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        compares = node.name in {"__eq__", "__ne__", "__contains__", "__lt__", "__le__", "__gt__", "__ge__"}
        if not compares:
            self.visit(node.args)
        if node.returns is not None:
            self._annotation(node.returns)
        for part in (*node.decorator_list, *node.body):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the visitor's name

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "cast" and node.args:
            self._annotation(node.args[0])
            for argument in node.args[1:]:
                self.visit(argument)
            return
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """An alias of a type: `Rows = list[object]`."""
        if isinstance(node.value, ast.Subscript | ast.BinOp):
            self._annotation(node.value)
        else:
            self.generic_visit(node)

    def _annotation(self, node: ast.expr, *, unused: bool = False) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return
            for part in ast.walk(inner):
                ast.copy_location(part, node)
            node = inner
        dropped = {id(part) for part in _results(node)}
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id == "object" and not unused and id(part) not in dropped:
                self._add(part, "object")
            elif isinstance(part, ast.Name | ast.Attribute):
                self._named(part)
            elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part is not node:
                self._quoted(part)

    def _named(self, node: ast.Name | ast.Attribute) -> None:
        if isinstance(node, ast.Name):
            self.visit_Name(node)
        elif node.attr == "Any":
            self._add(node, "Any")

    def _quoted(self, node: ast.Constant) -> None:
        if node.value == "Any":
            self._add(node, "Any")

    def _add(self, node: ast.expr, name: str) -> None:
        self.places.append((node.lineno, node.col_offset, name))


def _results(node: ast.expr) -> Iterator[ast.expr]:
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id in _DROPPED:
            arguments = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            yield arguments[_DROPPED[part.value.id]]


def main(arguments: list[str]) -> None:
    """Print the counts of every room, or with `--list` the places of the named rooms."""
    rooms = [argument for argument in arguments if not argument.startswith("-")]
    counts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in python_sources():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        found = places(text)
        if "--list" in arguments and (not rooms or any(name.startswith(f"coder/{room}") for room in rooms)):
            for line, _column, kind in found:
                print(f"{name}:{line}: {kind}: {text.splitlines()[line - 1].strip()}")
        for room in ("all", path.relative_to(ROOT).parts[1]):
            counts[room] += len(found)
            lines[room] += text.count("\n")
    if "--list" not in arguments:
        for room, count in counts.most_common():
            print(f"{room:14} {count:5} places, {1000 * count / max(lines[room], 1):5.2f} per 1,000 lines")


if __name__ == "__main__":
    main(sys.argv[1:])
