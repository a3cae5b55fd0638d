"""`coder templates init --builder`: a template composed from a base and modules by the server's template builder.

The server checks values and conflicts, and answers with the files, as for the dashboard's builder. Nothing is stored.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec import UnsetType

from coder.api.templates.template_builder import (
    TemplateBuilderBase,
    TemplateBuilderBasesResponse,
    TemplateBuilderModule,
    TemplateBuilderModulesResponse,
    TemplateBuilderModuleVariable,
)
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject, as_object
from coder.base.quoted import quoted
from coder.cli.core import session
from coder.cli.core.command import Invocation
from coder.cli.core.parsing import UsageError
from coder.cli.declarations.templates.push import TemplatesInitOptions
from coder.cli.templates.examples import unpack_new_files
from coder.cli.ui.choices import is_interactive, select, select_many
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import Row, ask_until, print_rows
from coder.cli.workspaces.parameters import pairs
from coder.client.answers import read
from coder.net.blocking import BlockingClient, HttpAnswer

_API = "/api/v2/templatebuilder"
_FIRST = "docker"
"""The selected base of the prompt, as in the dashboard."""


def asks_builder(options: TemplatesInitOptions) -> bool:
    """Return whether the options ask for the builder. Raises UsageError if they contradict each other."""
    composing = options.base or options.module or options.base_variable or options.module_variable
    if not (options.builder or options.list or composing):
        if options.output == "json":
            raise UsageError("--output json is for --list")
        return False
    if options.id:
        raise UsageError("--id writes an example; leave it out to compose a template with --base")
    return True


def run_builder(invocation: Invocation[TemplatesInitOptions]) -> int:
    """Print the bases and modules, or compose a template and write its files."""
    options = invocation.options
    client = session.client(invocation)
    bases_answer = client.request("GET", f"{_API}/bases")
    bases = {base.id: base for base in read(bases_answer, TemplateBuilderBasesResponse).bases}
    if options.base and options.base not in bases:
        raise CoderError("no_base", f"base {quoted(options.base)} not found", f"Known: {', '.join(bases)}")
    if options.list:
        shown = [bases[options.base]] if options.base else list(bases.values())
        _print_catalogue(invocation, shown, bases_answer, _modules(client, options.base))
        return 0
    base = bases[options.base] if options.base else _ask_base(bases)
    known = {item.id: item for item in read(_modules(client, base.id), TemplateBuilderModulesResponse).modules}
    body = _request(options, base, known)
    target = Path(invocation.args[0]) if invocation.args else Path(base.id)
    unpack_new_files(client.request("POST", f"{_API}/compose", json=body).body, target)
    print_next_step(base.id, target)
    return 0


def print_next_step(name: str, directory: Path) -> None:
    """Print the command that creates a template from the directory."""
    sys.stdout.write(f"Extracting {name} to ./{directory}...\nCreate your template by running:\n\n")
    sys.stdout.write(f"  cd {shlex.quote(str(directory))} && coder templates push\n\n")


def _modules(client: BlockingClient, base: str) -> HttpAnswer:
    return client.request("GET", f"{_API}/modules" + (f"?base={quote(base, safe='')}" if base else ""))


# ---- list


def _print_catalogue(
    invocation: Invocation[TemplatesInitOptions],
    bases: Sequence[TemplateBuilderBase],
    bases_answer: HttpAnswer,
    modules_answer: HttpAnswer,
) -> None:
    modules = read(modules_answer, TemplateBuilderModulesResponse).modules
    ids = {base.id for base in bases}

    def raw() -> Json:
        """The answers as they are, without the bases that are not listed."""
        listed = as_object(bases_answer.json())["bases"]
        kept = [item for item in listed if as_object(item)["id"] in ids] if isinstance(listed, list) else []
        return {"bases": kept, "modules": as_object(modules_answer.json())["modules"]}

    print_rows(invocation, lambda: [*map(_base_row, bases), *map(_module_row, modules)], raw)


def _base_row(base: TemplateBuilderBase) -> Row:
    return {
        "kind": "base",
        "id": base.id,
        "name": base.name,
        "category": "",
        "systems": base.os,
        "required": _required(base.variables),
        "conflicts with": "",
        "version": "",
        "description": base.description,
    }


def _module_row(module: TemplateBuilderModule) -> Row:
    return {
        "kind": "module",
        "id": module.id,
        "name": module.display_name,
        "category": module.category,
        "systems": ", ".join(module.compatible_os),
        "required": _required(module.variables),
        "conflicts with": ", ".join(module.conflicts_with),
        "version": module.version,
        "description": module.description,
    }


def _required(variables: Sequence[TemplateBuilderModuleVariable]) -> str:
    return ", ".join(variable.name for variable in variables if variable.required)


# ---- composition


def _ask_base(bases: dict[str, TemplateBuilderBase]) -> TemplateBuilderBase:
    if not is_interactive():
        raise UsageError("Missing values for the required flags: base")
    choices = [Choice(base.id, base.name, base.description) for base in bases.values()]
    answer = select("Choose a base:", choices, default=_FIRST if _FIRST in bases else next(iter(bases), ""))
    if answer not in bases:
        raise CoderError("no_base", f"base {quoted(answer)} not found", f"Known: {', '.join(bases)}")
    return bases[answer]


def _request(
    options: TemplatesInitOptions, base: TemplateBuilderBase, known: dict[str, TemplateBuilderModule]
) -> JsonObject:
    """Return the request.

    At a terminal, prompt for missing required values; if base or modules were chosen by prompt, for all their values.
    """
    values = _module_values(options.module_variable)
    ids = list(dict.fromkeys([*options.module, *values]))
    chosen = not ids and is_interactive()
    if chosen:
        choices = [Choice(item.id, item.display_name, item.description) for item in known.values()]
        ids = select_many("Choose modules:", choices)
    for module_id in ids:
        if module_id not in known:
            raise CoderError(
                "no_module",
                f"module {quoted(module_id)} not found, or it does not work with {base.id}",
                f"List the modules with `coder templates init --list --base {base.id}`.",
            )
    base_values = pairs(options.base_variable, "base-variable")
    _complete(base.variables, base_values, "--base-variable ", every=not options.base)
    modules: list[Json] = []
    for module_id in ids:
        given = values.get(module_id, {})
        _complete(known[module_id].variables, given, f"--module-variable {module_id}.", every=chosen)
        modules.append({"id": module_id, "variables": dict(given)})
    return {"base_template_id": base.id, "base_variable_values": dict(base_values), "modules": modules}


def _module_values(pieces: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the values of `module.name=value` texts by module. Raises CoderError."""
    values: dict[str, dict[str, str]] = {}
    for name, value in pairs(pieces, "module-variable").items():
        module_id, dot, variable = name.partition(".")
        if not dot:
            raise CoderError("parameter", f"--module-variable {quoted(name)} must have the form module.name=value")
        values.setdefault(module_id, {})[variable] = value
    return values


def _complete(
    variables: Sequence[TemplateBuilderModuleVariable], values: dict[str, str], flag: str, *, every: bool
) -> None:
    """Add the values that are prompted for; an answer that is the default is left out, so that Terraform repeats none.

    Raises UsageError for a missing required value without a terminal.
    """
    for variable in sorted(variables, key=lambda item: not item.required):
        if variable.name in values or not (variable.required or every):
            continue
        if not is_interactive():
            raise UsageError(f"Missing a required value: {flag}{variable.name}=…")
        default = _text(variable.default)
        hint = " [true/false]" if variable.type == "bool" else ""
        answer = ask_until(f"{variable.description}{hint}:", _checker(variable), default=default)
        if answer != default:
            values[variable.name] = answer


def _text(default: str | float | bool | UnsetType) -> str:
    """Return a default as the server reads values."""
    if isinstance(default, bool):
        return "true" if default else "false"
    return "" if isinstance(default, UnsetType) else str(default)


def _checker(variable: TemplateBuilderModuleVariable) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not text:
            return "A value is required." if variable.required else ""
        return "Write true or false." if variable.type == "bool" and text not in {"true", "false"} else ""

    return check
