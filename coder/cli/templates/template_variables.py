"""Values of Terraform variables for `templates push`: from the directory's files, a YAML file, and flags.

Files of values stay on the author's machine (`archive.py` excludes them); their values are sent instead.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coder.base.errors import CoderError
from coder.cli.command import Invocation
from coder.cli.workspaces.parameters import pairs


def variable_values(invocation: Invocation, directory: str) -> dict[str, str]:
    """Return the values by name: flags override the flag's file, which overrides the directory's *.tfvars. Raise
    CoderError."""
    values = {} if directory == "-" else directory_values(Path(directory))
    if invocation["variables_file"]:
        values |= _from_yaml(Path(invocation["variables_file"]))
    return values | pairs(invocation["variable"], "variable") | pairs(invocation["var"], "var")


def _from_yaml(path: Path) -> dict[str, str]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CoderError("variables", f"cannot read variables from {path}", "It must be YAML.") from error
    if content is not None and not isinstance(content, dict):
        raise CoderError("variables", f"{path} must have one `name: value` per line")
    return {str(name): _text(value) for name, value in (content or {}).items()}


def directory_values(directory: Path) -> dict[str, str]:
    """Read terraform.tfvars, then *.auto.tfvars by name, each also as JSON. Raise CoderError for an unreadable file."""
    names = [directory / "terraform.tfvars", directory / "terraform.tfvars.json"]
    names += sorted([*directory.glob("*.auto.tfvars"), *directory.glob("*.auto.tfvars.json")])
    values: dict[str, str] = {}
    for path in names:
        if path.is_file():
            values |= _from_json(path) if path.suffix == ".json" else _from_hcl(path)
    return values


def _from_json(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise CoderError("variables", f"cannot read variables from {path}") from error
    if not isinstance(content, dict):
        raise CoderError("variables", f"{path} must be a JSON object")
    return {str(name): _text(value) for name, value in content.items()}


def _from_hcl(path: Path) -> dict[str, str]:
    from coder.domain.hcl.evaluate import evaluate
    from coder.domain.hcl.lexer import HclError
    from coder.domain.hcl.parser import parse_file_untrusted
    from coder.domain.hcl.scope import EvaluationScope
    from coder.domain.hcl.values import EvaluationError

    try:
        body = parse_file_untrusted(path.read_text(encoding="utf-8-sig", errors="replace"), path.name).body
        return {name: _text(evaluate(value, EvaluationScope({}))) for name, value in body.attributes.items()}
    except (HclError, EvaluationError) as error:
        raise CoderError("variables", f"cannot read variables from {path}") from error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
