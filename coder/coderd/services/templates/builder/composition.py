"""Composition of a base and modules into the files of a template. Pure.

The result is written as `terraform fmt` writes it: the base's `main.tf` with the submitted defaults, and below it one
`module` block for each module, whose own files are in `modules/ID`. With a registry, blocks name its modules instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coder.api.base.refusals import InvalidFields
from coder.coderd.services.templates.builder.catalogue import AGENT, MAIN, BuilderBase, BuilderModule, BuilderVariable
from coder.coderd.services.templates.builder.values import expression
from coder.domain.hcl.literals import text_literal

MAX_MODULES = 50
_IMAGE = "container_image"
Fault = tuple[str, str]
"""Field of the request, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A module with the submitted values."""

    module: BuilderModule
    values: Mapping[str, str] = field(default_factory=dict)


def compose(
    base: BuilderBase, values: Mapping[str, str], chosen: Sequence[Chosen], registry: str = ""
) -> dict[str, bytes]:
    """Return the files of the template by path. `registry` is the host of a registry of modules; empty uses our own.

    Raises InvalidFields with every fault: unknown and missing variables, values of another type, conflicts.
    """
    faults: list[Fault] = []
    given = _expressions("base_variable_values", base.variables, values, faults, heredocs=False)
    arguments = [
        _expressions(f"modules.{item.module.id}", item.module.variables, item.values, faults, heredocs=True)
        for item in chosen
    ]
    faults += _conflicts(base, chosen)
    if faults:
        raise InvalidFields(*faults, message="The template cannot be composed.")
    text = _with_defaults(base, given)
    files = dict(base.files)
    for item, expressions in zip(chosen, arguments, strict=True):
        local = not (registry and item.module.registry)
        text += "\n" + _call(base, item.module, expressions, "" if local else registry)
        if local:
            files |= {f"modules/{item.module.id}/{name}": data for name, data in item.module.files.items()}
    files[MAIN] = text.encode()
    if "README.md" in files:
        files["README.md"] = (files["README.md"].decode() + _listing(chosen)).encode()
    return dict(sorted(files.items()))


# ---- values


def _expressions(
    where: str,
    variables: Sequence[BuilderVariable],
    values: Mapping[str, str],
    faults: list[Fault],
    *,
    heredocs: bool,
) -> dict[str, str]:
    """Return the submitted values that differ from the defaults, as Terraform; append the faults."""
    known = {variable.name for variable in variables}
    faults += [(f"{where}.{name}", "There is no such variable.") for name in values if name not in known]
    results: dict[str, str] = {}
    for variable in variables:
        text = values.get(variable.name)
        if text is None or (text == "" and (variable.required or variable.type != "string")):
            if variable.required:
                faults.append((f"{where}.{variable.name}", "A value is required."))
            continue
        try:
            written = expression(variable, text, heredocs=heredocs)
        except ValueError as error:
            faults.append((f"{where}.{variable.name}", str(error)))
            continue
        if written != _default(variable):
            results[variable.name] = written
    return results


def _default(variable: BuilderVariable) -> str | None:
    if isinstance(variable.default, bool):
        return str(variable.default).lower()
    return text_literal(variable.default) if isinstance(variable.default, str) else str(variable.default)


# ---- conflicts


def _conflicts(base: BuilderBase, chosen: Sequence[Chosen]) -> Iterator[Fault]:
    if len(chosen) > MAX_MODULES:
        yield "modules", f"Choose at most {MAX_MODULES} modules."
    by_id: dict[str, BuilderModule] = {}
    ports: dict[str, str] = {}
    for item in chosen:
        module, where = item.module, f"modules.{item.module.id}"
        if module.id in by_id:
            yield where, f"{module.display_name} is chosen twice."
            continue
        if base.os not in module.compatible_os:
            yield where, f"{module.display_name} does not work on {base.os}."
        for other in by_id.values():
            if other.id in module.conflicts_with or module.id in other.conflicts_with:
                yield where, f"{module.display_name} cannot be combined with {other.display_name}."
        for name in module.agreements:
            if item.values.get(name) != "true":
                yield f"{where}.{name}", "You must accept this to use the module."
        port = _port(item)
        if port and port in ports:
            yield f"{where}.port", f"Port {port} is already used by {ports[port]}."
        by_id[module.id] = module
        ports[port] = module.display_name


def _port(item: Chosen) -> str:
    default = next((variable.default for variable in item.module.variables if variable.name == "port"), None)
    return item.values.get("port") or str(default or "")


# ---- text


def _with_defaults(base: BuilderBase, given: Mapping[str, str]) -> str:
    """Return the base's Terraform with the submitted values as defaults of its variables."""
    text = base.files[MAIN].decode()
    for name, written in given.items():
        if name == _IMAGE and base.image:
            text = text.replace(text_literal(base.image), written)
            continue
        block = re.search(rf'^variable "{re.escape(name)}" {{\n.*?^}}$', text, re.MULTILINE | re.DOTALL)
        if block is None:
            raise LookupError(f"{base.id} declares no variable {name}")
        text = text[: block.start()] + _with_default(block[0], written) + text[block.end() :]
    return text


def _with_default(block: str, written: str) -> str:
    """Return a `variable` block with another default, which every bundled example aligns alike."""
    lines = [line for line in block.split("\n") if not line.startswith("  default ")]
    after_type = next(index for index, line in enumerate(lines) if line.startswith("  type ")) + 1
    return "\n".join([*lines[:after_type], f"  default     = {written}", *lines[after_type:]])


def _call(base: BuilderBase, module: BuilderModule, arguments: Mapping[str, str], registry: str) -> str:
    """Return the `module` block."""
    source = {"source": text_literal(f"./modules/{module.id}")}
    if registry:
        source = {
            "source": text_literal(f"{registry}/{module.registry}"),
            "version": text_literal(module.registry_version),
        }
    count = {"count": "data.coder_workspace.me.start_count"} if base.counted else {}
    agent = f"{AGENT}[0].id" if base.counted else f"{AGENT}.id"
    lines = {name: written for name, written in arguments.items() if "\n" not in written}
    groups = [{**count, **source}, {"agent_id": agent, **lines}]
    groups += [{name: written} for name, written in arguments.items() if "\n" in written]
    body = "\n\n".join(_aligned(group) for group in groups)
    return f"module {text_literal(module.id)} {{\n{body}\n}}\n"


def _aligned(attributes: Mapping[str, str]) -> str:
    width = max(map(len, attributes))
    return "\n".join(f"  {name.ljust(width)} = {written}" for name, written in attributes.items())


def _listing(chosen: Sequence[Chosen]) -> str:
    if not chosen:
        return ""
    rows = "\n".join(f"- {item.module.display_name}: {item.module.description.rstrip('.')}." for item in chosen)
    return f"\n## Modules\n\n{rows}\n"
