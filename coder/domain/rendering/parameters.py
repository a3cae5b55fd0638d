"""Parameters of a form: value, default, options, validation and diagnostics.

Output is plain data in the shape of the client API (dynamic parameters).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict, cast

from coder.base.json_types import JsonObject
from coder.domain.hcl import tree
from coder.domain.hcl import values as v
from coder.domain.hcl.evaluate import pairs
from coder.domain.hcl.values import UNTYPED, EvaluationError, Value
from coder.domain.rendering.module_scope import Instance, ModuleScope, RenderRequest, as_text
from coder.domain.rendering.sources import Files, Located, read_source
from coder.domain.templates import parameter_rules as rules


class WireValue(TypedDict):
    """Value as clients receive it; `value` describes an invalid one."""

    valid: bool
    value: str


class FormOption(TypedDict):
    name: str
    description: str
    value: WireValue
    icon: str


class FormValidation(TypedDict):
    validation_error: str
    validation_regex: str | None
    validation_min: int | None
    validation_max: int | None
    validation_monotonic: str | None


class FormParameter(TypedDict):
    """Parameter of a form, with the field names of the client API."""

    name: str
    display_name: str
    description: str
    type: str
    form_type: str
    styling: JsonObject
    mutable: bool
    default_value: WireValue
    icon: str
    options: list[FormOption]
    validations: list[FormValidation]
    required: bool
    order: int
    ephemeral: bool
    value: WireValue
    diagnostics: list[JsonObject]


class _Option(TypedDict):
    name: str
    description: str
    value: Value
    icon: str


_STYLES = ("placeholder", "disabled", "label", "mask_input")


@dataclass(frozen=True, slots=True)
class Rendered:
    parameters: list[FormParameter]
    diagnostics: list[JsonObject]
    world: ModuleScope
    labels: list[str]
    """References of the parameters, in order."""

    def response(self, number: int) -> JsonObject:
        """Return a message of the dynamic-parameters socket."""
        return {"id": number, "diagnostics": self.diagnostics, "parameters": cast("list[JsonObject]", self.parameters)}


def diagnostic(summary: str, detail: str, code: str = "", severity: str = "error") -> JsonObject:
    return {"severity": severity, "summary": summary, "detail": detail, "extra": {"code": code}}


def render(files: Files, request: RenderRequest) -> Rendered:
    """Render all parameters of a template. Never fails: evaluation errors become diagnostics."""
    world = ModuleScope(files, read_source(files), request)
    results: list[tuple[FormParameter, Instance]] = []
    problems: list[JsonObject] = []
    for inner in world.walk():
        problems.extend(_missing_modules(inner))
        for located in sorted(inner.source.of("data", "coder_parameter"), key=_label):
            for instance in inner.expand(located) if len(located.block.labels) == 2 else ():
                built = _build(instance)
                if isinstance(built, dict):
                    results.append((built, instance))
                else:
                    problems.extend(built)
    results.sort(key=lambda item: (item[0]["order"], item[0]["name"].encode()))
    problems.extend(_duplicates(results))
    return Rendered([item for item, _ in results], problems, world, [instance.reference for _, instance in results])


def _label(located: Located) -> tuple[str, ...]:
    return located.block.labels


def _missing_modules(world: ModuleScope) -> Iterator[JsonObject]:
    for located in world.source.of("module"):
        name = located.block.labels[0] if located.block.labels else ""
        if world.children(name) is None:
            where = f"{located.file}:{located.block.span.line},1-{len(f'module {chr(34)}{name}{chr(34)}') + 1}"
            yield diagnostic(
                "Module not loaded. Did you run `terraform init`?",
                f'Module \'module "{name}"\' in file "{where}" cannot be resolved. This module will be ignored.',
                "module_not_loaded",
                "warning",
            )


def _duplicates(parameters: list[tuple[FormParameter, Instance]]) -> Iterator[JsonObject]:
    by_name: dict[str, list[Instance]] = {}
    for built, instance in parameters:
        by_name.setdefault(built["name"], []).append(instance)
    for name, instances in by_name.items():
        if len(instances) > 1:
            places = "".join(
                f'block "{instance.reference}" at {instance.located.file}:{instance.located.block.span.line},1-5\n'
                for instance in instances
            )
            yield diagnostic(
                f'Found {len(instances)} duplicate parameters with name "{name}", this is not allowed', places
            )


# --- one parameter


def _build(instance: Instance) -> FormParameter | list[JsonObject]:
    """Return the parameter, or the diagnostics that prevent it."""
    block = f"coder_parameter.{instance.label}"
    name = instance.world.evaluate(instance.attribute("name"), instance.scope)
    if name is None:
        return [diagnostic(f'Missing required attribute "name" for block "{block}"', "The name attribute is required")]
    if not isinstance(name, str):
        detail = f'Expected a string, got "{v.type_name(name)}"'
        return [diagnostic(f'Invalid "name" attribute for block {block}', detail)]
    kind, form_type = _text(instance, "type") or "string", _text(instance, "form_type")
    if kind not in rules.TYPES:
        detail = f'invalid parameter type "{kind}", expected one of [{", ".join(rules.TYPES)}]'
        return [diagnostic(f'Invalid "type" attribute for block {block}', detail)]
    if form_type and form_type not in rules.FORM_TYPES:
        detail = f'invalid form type "{form_type}", expected one of [{", ".join(rules.FORM_TYPES)}]'
        return [diagnostic(f'Invalid "form_type" attribute for block {block}', detail)]
    return _Parameter(instance, name, kind, form_type).build()


def _text(instance: Instance, name: str) -> str:
    value = instance.world.evaluate(instance.attribute(name), instance.scope)
    return "" if value is None or v.is_unknown(value) or isinstance(value, list | dict) else v.to_text(value)


def _flag(instance: Instance, name: str) -> bool:
    return _text(instance, name) == "true"


def _whole(instance: Instance, name: str) -> int | None:
    try:
        return int(v.to_number(_text(instance, name)))
    except (EvaluationError, OverflowError):
        return None


class _Parameter:
    def __init__(self, instance: Instance, name: str, kind: str, form_type: str) -> None:
        self._instance = instance
        self._name = name
        self._kind = kind
        self._given_form_type = form_type
        self._problems: list[JsonObject] = []

    def build(self) -> FormParameter:
        instance = self._instance
        options = list(self._options())
        form_type, complaint = rules.choose_form_type(self._kind, bool(options), self._given_form_type)
        if complaint is not None:
            summary = f'Invalid parameter `type="{self._kind}"` and `form_type="{form_type}"`'
            self._problems.append(diagnostic(summary, complaint.detail))
            form_type = "error"
        validations = [self._validation(scope) for scope in self._blocks("validation")]
        default = instance.world.evaluate(instance.attribute("default"), instance.scope)
        submitted = instance.world.request.inputs.get(self._name)
        value = default if submitted is None else submitted
        required = "default" not in instance.located.block.body.attributes
        self._check(value, required, form_type, options, validations)
        return {
            "name": self._name,
            "display_name": _text(instance, "display_name"),
            "description": _text(instance, "description"),
            "type": self._kind,
            "form_type": form_type,
            "styling": self._styling(),
            "mutable": _flag(instance, "mutable"),
            "default_value": _wire_value(default, ""),
            "icon": _text(instance, "icon"),
            "options": [_form_option(option) for option in options],
            "validations": validations,
            "required": required,
            "order": _whole(instance, "order") or 0,
            "ephemeral": _flag(instance, "ephemeral"),
            "value": _wire_value(value, f"{instance.local_reference}.value"),
            "diagnostics": self._problems,
        }

    # --- nested blocks
    def _blocks(self, kind: str) -> Iterator[Instance]:
        """Return nested blocks as instances with their own scope, `dynamic` ones expanded."""
        instance = self._instance
        for inner in instance.located.block.body.blocks:
            if inner.type == kind:
                yield Instance(instance.world, Located(inner, instance.located.file), instance.scope)
            elif inner.type == "dynamic" and inner.labels == (kind,):
                yield from self._dynamic(inner, kind)

    def _dynamic(self, block: tree.HclBlock, kind: str) -> Iterator[Instance]:
        instance = self._instance
        collection = instance.world.evaluate(block.body.attributes.get("for_each"), instance.scope)
        iterator = block.body.attributes.get("iterator")
        name = iterator.name if isinstance(iterator, tree.Variable) else kind
        content = next((item for item in block.body.blocks if item.type == "content"), None)
        if content is None or v.is_unknown(collection) or not isinstance(collection, dict | list):
            return
        for key, value in pairs(collection):
            scope = instance.scope.with_names(**{name: {"key": key, "value": value}})
            yield Instance(instance.world, Located(content, instance.located.file), scope)

    def _options(self) -> Iterator[_Option]:
        for option in self._blocks("option"):
            value = option.world.evaluate(option.attribute("value"), option.scope)
            if option.attribute("value") is None:
                self._problems.append(
                    diagnostic('Missing required attribute "value" for block ""', "The value attribute is required")
                )
                continue
            yield {
                "name": _text(option, "name"),
                "description": _text(option, "description"),
                "value": value if v.is_unknown(value) or value is None else as_text(value),
                "icon": _text(option, "icon"),
            }

    def _validation(self, block: Instance) -> FormValidation:
        return {
            "validation_error": _text(block, "error"),
            "validation_regex": _text(block, "regex") or None,
            "validation_min": _whole(block, "min"),
            "validation_max": _whole(block, "max"),
            "validation_monotonic": _text(block, "monotonic") or None,
        }

    def _styling(self) -> JsonObject:
        try:
            styling = json.loads(_text(self._instance, "styling") or "{}")
        except ValueError:
            return {}
        return {name: styling[name] for name in _STYLES if name in styling} if isinstance(styling, dict) else {}

    # --- checks
    def _check(
        self, value: Value, required: bool, form_type: str, options: list[_Option], validations: list[FormValidation]
    ) -> None:
        if self._problems:
            return
        if len(validations) > 1:
            detail = "Only one validation block is allowed"
            self._problems.append(diagnostic("Multiple 'validation' blocks found", detail))
            return
        known: list[rules.Option] = [
            {"name": option["name"], "value": option["value"]} for option in options if isinstance(option["value"], str)
        ]
        body: rules.Body = {
            "type": self._kind,
            "form_type": form_type,
            "option": known,
            "validation": [rule_body(validation) for validation in validations],
        }
        if v.is_unknown(value):
            self._check_unknown(value)
        elif value is None:
            self._check_missing(body, required)
        else:
            text = as_text(value)
            result = list(rules.check_options(body))
            if not result and isinstance(text, str):
                result = list(rules.check_value(body, text, None, ()))
            self._problems += [diagnostic(item.summary, item.detail) for item in result]

    def _check_unknown(self, value: Value) -> None:
        # Only a value from for_each is reported; any other may still arrive.
        default = self._instance.attribute("default")
        if isinstance(default, tree.HclAttribute) and default.of == tree.Variable(default.of.span, "each"):
            known_type = value is not UNTYPED
            problem = "unknown, it likely includes a reference without a value" if known_type else "not valid"
            detail = (
                "The value of a parameter is required to be sourced (default or input) for the parameter to function."
            )
            self._problems.append(diagnostic(f"Parameter value is {problem}", detail))

    def _check_missing(self, body: rules.Body, required: bool) -> None:
        if not required:
            return
        if body["validation"]:
            reason = rules.validation_problem(body["validation"][0], self._kind, "", None)
            if reason:
                summary = "Invalid parameter value according to 'validation' block"
                self._problems.append(diagnostic(summary, reason))
        self._problems.append(diagnostic("Required parameter not provided", "parameter value is null", "required"))


def rule_body(validation: FormValidation) -> rules.Validation:
    """Return a validation in the form the rules read."""
    low, high = validation["validation_min"], validation["validation_max"]
    return {
        "min": low or 0,
        "max": high or 0,
        "min_disabled": low is None,
        "max_disabled": high is None,
        "monotonic": validation["validation_monotonic"] or "",
        "regex": validation["validation_regex"] or "",
        "error": validation["validation_error"],
    }


def _form_option(option: _Option) -> FormOption:
    return {
        "name": option["name"],
        "description": option["description"],
        "value": _wire_value(option["value"], ""),
        "icon": option["icon"],
    }


def _wire_value(value: Value, instead: str) -> WireValue:
    text = value if value is None or v.is_unknown(value) else as_text(value)
    return {"valid": True, "value": text} if isinstance(text, str) else {"valid": False, "value": instead}
