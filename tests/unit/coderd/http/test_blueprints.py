"""Every view is served: a module that creates a blueprint is registered in the application."""

from __future__ import annotations

import ast
from pathlib import Path

from coder.coderd.http.blueprints import BLUEPRINTS

ROOT = Path(__file__).parents[4]


def test_every_blueprint_is_registered_once() -> None:
    made = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "coder/coderd/http").rglob("*.py")
        if "= Blueprint(" in path.read_text()
    ]
    assert sorted(blueprint.import_name for blueprint in BLUEPRINTS) == sorted(made)
    assert len({blueprint.name for blueprint in BLUEPRINTS}) == len(BLUEPRINTS)
    assert BLUEPRINTS[-1].name == "site", "it takes all remaining paths"


def test_no_module_is_named_by_text() -> None:
    """Import contracts do not see modules named by text."""
    results = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "coder/coderd").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
    ]
    assert not results
