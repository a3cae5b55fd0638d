"""Rich parameter values from flags, files, another workspace, defaults and, last, the person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coder.base.config import Option
from coder.base.errors import CoderError
from coder.cli.command import Invocation
from coder.cli.output import ask

OPTIONS = (
    Option(
        "parameter", "parameter", "CODER_RICH_PARAMETER", kind="string-array", default=(), help="Value, name=value."
    ),
    Option(
        "parameter_default",
        "parameter-default",
        "CODER_RICH_PARAMETER_DEFAULT",
        kind="string-array",
        default=(),
        help="Default value offered for a parameter, name=value.",
    ),
    Option("rich_parameter_file", "rich-parameter-file", "CODER_RICH_PARAMETER_FILE", help="YAML file of name: value."),
    Option(
        "ephemeral_parameter",
        "ephemeral-parameter",
        "CODER_EPHEMERAL_PARAMETER",
        kind="string-array",
        default=(),
        help="Value of an ephemeral parameter, name=value.",
    ),
    Option(
        "prompt_ephemeral",
        "prompt-ephemeral-parameters",
        "CODER_PROMPT_EPHEMERAL_PARAMETERS",
        kind="bool",
        default=False,
        help="Prompt for ephemeral parameters.",
    ),
    Option(
        "use_defaults",
        "use-parameter-defaults",
        "CODER_WORKSPACE_USE_PARAMETER_DEFAULTS",
        kind="bool",
        default=False,
        help="Accept the defaults of all parameters without a prompt.",
    ),
    Option("always_prompt", "always-prompt", kind="bool", default=False, help="Prompt for every parameter."),
    Option("build_option", "build-option", "CODER_BUILD_OPTION", kind="string-array", default=(), hidden=True),
    Option("build_options", "build-options", kind="bool", default=False, hidden=True),
)


def pairs(pieces: Sequence[str], flag: str) -> dict[str, str]:
    """`name=value` texts. Several may share one flag, split at commas; lists keep theirs. Raises CoderError."""
    found = {}
    for line in _whole(pieces):
        name, equals, value = line.partition("=")
        if not equals:
            raise CoderError("parameter", f"--{flag} {line!r} needs the form name=value")
        found[name] = value
    return found


def _whole(pieces: Sequence[str]) -> list[str]:
    """Undoes the splitting at commas inside of quotes (CSV, as upstream wants lists to be written) and JSON lists."""
    lines: list[str] = []
    for piece in pieces:
        if lines and _is_open(lines[-1]):
            lines[-1] += f",{piece}"
        else:
            lines.append(piece)
    return [
        line[1:-1].replace('""', '"') if line.startswith('"') and line.endswith('"') and len(line) > 1 else line
        for line in lines
    ]


def _is_open(line: str) -> bool:
    if line.startswith('"'):
        return line.count('"') % 2 == 1
    value = line.partition("=")[2]
    return value.startswith(("[", "{")) and not value.endswith(("]", "}"))


def given_values(invocation: Invocation) -> dict[str, str]:
    """What flags and the file say; flags win."""
    found: dict[str, str] = {}
    path = invocation["rich_parameter_file"]
    if path:
        found |= _from_file(Path(path))
    found |= pairs(invocation["build_option"], "build-option")
    found |= pairs(invocation["ephemeral_parameter"], "ephemeral-parameter")
    return found | pairs(invocation["parameter"], "parameter")


def _from_file(path: Path) -> dict[str, str]:
    import json

    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise CoderError("parameter", f"cannot read parameters from {path}") from error
    if not isinstance(content, dict):
        raise CoderError("parameter", f"{path} must hold one name: value a line")
    return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in content.items()}


def resolve_parameters(
    invocation: Invocation, parameters: list[dict[str, Any]], previous: dict[str, str], *, first_build: bool
) -> list[dict[str, str]]:
    """Values to send with a build: only those given, asked for, or needed. Raises CoderError for unknown names."""
    given = given_values(invocation)
    known = {parameter["name"]: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise CoderError("parameter", f'parameter "{name}" is not present in the template', f"Known: {listed}")
    offered = pairs(invocation["parameter_default"], "parameter-default")
    values: dict[str, str] = {}
    for parameter in parameters:
        name = parameter["name"]
        if name in given:
            values[name] = given[name]
        elif name in previous and not invocation["always_prompt"]:
            continue  # the server carries the previous build's values over
        elif parameter["ephemeral"] and not (invocation["prompt_ephemeral"] or invocation["build_options"]):
            continue
        elif not parameter["required"] and _takes_default(invocation, name in offered):
            continue
        elif first_build or invocation["always_prompt"] or parameter["required"]:
            values[name] = _prompt(parameter, previous.get(name) or offered.get(name) or parameter["default_value"])
    return [{"name": name, "value": value} for name, value in values.items()]


def _takes_default(invocation: Invocation, offered: bool) -> bool:
    """True when nobody shall be asked about a parameter that has a default."""
    return bool(invocation["use_defaults"] or (invocation.options.get("yes") and not offered))


def _prompt(parameter: dict[str, Any], default: str) -> str:
    title = parameter.get("display_name") or parameter["name"]
    sys.stdout.write(f"\n{title}\n")
    if parameter.get("description_plaintext"):
        sys.stdout.write(f"  {parameter['description_plaintext']}\n")
    options = parameter.get("options") or []
    for index, option in enumerate(options, 1):
        text = f" - {option['description']}" if option.get("description") else ""
        sys.stdout.write(f"  {index}. {option['name']} ({option['value']}){text}\n")
    answer = ask("Enter a value:", default=default)
    if options and answer.isdigit() and answer not in {option["value"] for option in options}:
        position = int(answer) - 1
        if 0 <= position < len(options):
            return str(options[position]["value"])
    return answer
