"""Values of Terraform variables for `templates push`: from the directory's files, a YAML file, and flags.

Files of values stay on the author's machine (`archive.py` excludes them); their values are sent instead. Null, in any
of the files, leaves a variable its default: the API has no null.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.core.value_text import expression_text, read_json, read_values
from coder.cli.core.written_text import read_written
from coder.cli.declarations.templates.push import TemplatesPushOptions
from coder.cli.workspaces.parameters import pairs
from coder.domain.hcl.evaluate import evaluate
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.scope import EvaluationScope
from coder.domain.hcl.values import EvaluationError


def variable_values(invocation: Invocation[TemplatesPushOptions], directory: str) -> dict[str, str]:
    """Return the values by name: flags override the flag's file, which overrides the directory's *.tfvars. Raise
    CoderError."""
    values: dict[str, str | None] = {} if directory == "-" else {**directory_values(Path(directory))}
    if invocation.options.variables_file:
        read = read_values(Path(invocation.options.variables_file), "variable")
        values |= {name: expression_text(value) for name, value in read.items()}
    return _set(values) | pairs(invocation.options.variable, "variable") | pairs(invocation.options.var, "var")


def _set(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the values without null: such a variable has its default."""
    return {name: value for name, value in values.items() if value is not None}


def directory_values(directory: Path) -> dict[str, str]:
    """Read terraform.tfvars, then *.auto.tfvars by name, each also as JSON. Raise CoderError for an unreadable file."""
    names = [directory / "terraform.tfvars", directory / "terraform.tfvars.json"]
    names += sorted([*directory.glob("*.auto.tfvars"), *directory.glob("*.auto.tfvars.json")])
    values: dict[str, str | None] = {}
    for path in names:
        if path.is_file():
            values |= _from_json(path) if path.suffix == ".json" else _from_hcl(path)
    return _set(values)


def _from_json(path: Path) -> dict[str, str | None]:
    try:
        content = read_json(read_written(path))
    except (ValueError, RecursionError) as error:
        raise CoderError("variables", f"cannot read variables from {path}") from error
    if not isinstance(content, dict):
        raise CoderError("variables", f"{path} must be a JSON object")
    return {str(name): expression_text(value) for name, value in content.items()}


def _from_hcl(path: Path) -> dict[str, str | None]:
    try:
        body = parse_file_untrusted(read_written(path), path.name).body
        return {name: expression_text(evaluate(value, EvaluationScope({}))) for name, value in body.attributes.items()}
    except (HclError, EvaluationError, UnicodeError) as error:
        raise CoderError("variables", f"cannot read variables from {path}") from error
