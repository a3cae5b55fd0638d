"""Resolution of a build's parameter values: from flags, presets, earlier builds, and prompts.

The server renders the form after every answer, since a parameter's options, default or existence can depend on others
(`Form`). The server validates each answer; an error is printed and the prompt repeats.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import quote
from uuid import UUID

from msgspec import UNSET

from coder.api.people.users import User
from coder.api.templates.parameters import DynamicParametersResponse, PreviewParameter, TemplateVersionParameter
from coder.base.errors import CoderError
from coder.cli.core.command import Invocation
from coder.cli.declarations.workspaces.parameters import ParameterOptions
from coder.cli.ui.choices import is_interactive, print_choices, resolve_choice, select, select_many
from coder.cli.ui.chooser import Choice
from coder.cli.ui.output import ask
from coder.cli.workspaces.parameters import FileValue, bool_text, pairs, requested_values
from coder.client.answers import read
from coder.domain.templates.parameter_rules import monotonic_problem
from coder.domain.templates.parameters import explain_value
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError

CREATE, START, UPDATE = "create", "start", "update"
_ROUNDS = 200
"""Maximum rounds of answers, more than any form has fields."""


class VersionParameters:
    """Parameters of a template version, rendered for given values."""

    def __init__(self, client: BlockingClient, version_id: UUID, owner: str) -> None:
        self._client = client
        self._path = f"/api/v2/templateversions/{version_id}"
        self._owner = owner
        self._owner_id: UUID | None = None
        self._fixed: list[TemplateVersionParameter] | None = None

    def read(self, inputs: Mapping[str, str]) -> list[FormParameter]:
        """Return the parameters in order."""
        if self._fixed is None:
            answer = self._evaluate(inputs)
            if answer is not None:
                return [_rendered(item) for item in answer]
            fixed_parameters = self._client.request("GET", f"{self._path}/rich-parameters")
            self._fixed = read(fixed_parameters, list[TemplateVersionParameter])
        return [_fixed(item, inputs) for item in self._fixed]

    def _evaluate(self, inputs: Mapping[str, str]) -> list[PreviewParameter] | None:
        """Return the form; None if the server cannot render this version, or not for this owner."""
        try:
            if not self._owner_id:
                owner = self._client.request("GET", f"/api/v2/users/{quote(self._owner)}")
                self._owner_id = read(owner, User).id
            body = {"id": 0, "inputs": dict(inputs), "owner_id": self._owner_id}
            answer = self._client.request("POST", f"{self._path}/dynamic-parameters/evaluate", json=body)
        except HttpError as error:
            if error.status in {403, 404}:
                return None
            raise
        return read(answer, DynamicParametersResponse).parameters


@dataclass(frozen=True, slots=True)
class FormOption:
    name: str
    value: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FormParameter:
    """Parameter of the form, from either of the server's formats."""

    name: str
    title: str
    description: str
    type: str
    mutable: bool
    ephemeral: bool
    required: bool
    default_value: str
    options: tuple[FormOption, ...] = ()
    value: str | None = None
    "Value with the current answers; None without a value."
    problems: tuple[str, ...] = ()
    "Validation errors of the value."
    monotonic: str = ""
    "Direction in which a number can change: increasing, decreasing, or any."


def _rendered(preview: PreviewParameter) -> FormParameter:
    return FormParameter(
        name=preview.name,
        title=preview.display_name or preview.name,
        description=preview.description,
        type=preview.type,
        mutable=preview.mutable,
        ephemeral=preview.ephemeral,
        required=preview.required,
        default_value=preview.default_value.value if preview.default_value.valid else "",
        options=tuple(FormOption(option.name, option.value.value, option.description) for option in preview.options),
        value=preview.value.value if preview.value.valid else None,
        problems=tuple(
            f"{diagnostic.summary}: {diagnostic.detail}"
            for diagnostic in preview.diagnostics
            if diagnostic.severity == "error"
        ),
        monotonic=next((rule.validation_monotonic for rule in preview.validations if rule.validation_monotonic), ""),
    )


def _fixed(parameter: TemplateVersionParameter, inputs: Mapping[str, str]) -> FormParameter:
    value = inputs.get(parameter.name, parameter.default_value)
    problem = _problem_of(parameter, value) if parameter.name in inputs else None
    return FormParameter(
        name=parameter.name,
        title=parameter.display_name or parameter.name,
        description=parameter.description_plaintext,
        type=parameter.type,
        mutable=parameter.mutable,
        ephemeral=parameter.ephemeral,
        required=parameter.required,
        default_value=parameter.default_value,
        options=tuple(FormOption(option.name, option.value, option.description) for option in parameter.options),
        value=value,
        problems=(problem,) if problem else (),
        monotonic=parameter.validation_monotonic or "",
    )


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Parameter of an import as `domain/templates/parameters.py` expects it."""

    name: str
    type: str
    form_type: str
    mutable: bool
    default_value: str
    options: tuple[Mapping[str, str], ...]
    validation_regex: str
    validation_error: str
    validation_min: int | None
    validation_max: int | None
    validation_monotonic: str
    required: bool
    ephemeral: bool


def _problem_of(parameter: TemplateVersionParameter, value: str) -> str | None:
    """Return why the server will reject the value."""
    low, high = parameter.validation_min, parameter.validation_max
    recorded = _Recorded(
        parameter.name,
        parameter.type,
        parameter.form_type,
        parameter.mutable,
        parameter.default_value,
        tuple({"value": option.value} for option in parameter.options),
        parameter.validation_regex or "",
        parameter.validation_error or "",
        None if low is UNSET else int(low),
        None if high is UNSET else int(high),
        parameter.validation_monotonic or "",
        parameter.required,
        parameter.ephemeral,
    )
    return explain_value(recorded, value)


@dataclass(slots=True)
class KnownValues:
    """Values known before any prompt."""

    action: str
    previous: Mapping[str, str] = field(default_factory=dict)
    "Values of the last build, which the server keeps."
    copied: Mapping[str, str] = field(default_factory=dict)
    "Values of another workspace, sent if the template still has the parameters."
    preset: Mapping[str, str] = field(default_factory=dict)
    "Values that the server sets; they override flags."
    is_checked: bool = False
    "Whether to raise CoderError for values that the server will reject."


def resolve_values(
    invocation: Invocation[ParameterOptions], form: VersionParameters, known: KnownValues
) -> list[dict[str, str]]:
    """Return the values to send with a build. Raise CoderError for unknown parameters and rejected values."""
    flag_values = requested_values(invocation)
    offered = pairs(invocation.options.parameter_default, "parameter-default")
    chosen: dict[str, str] = dict(flag_values)
    prompted: set[str] = set()
    seen: dict[str, FormParameter] = {}
    parameters: list[FormParameter] = []
    for _ in range(_ROUNDS):
        values = {**known.previous, **known.copied, **chosen, **known.preset}
        parameters = form.read({name: str(value) for name, value in values.items()})
        seen |= {parameter.name: parameter for parameter in parameters}
        _reject_near_misses(flag_values, seen)
        words = _bool_words(parameters, chosen)
        if words:
            chosen |= words
            continue
        open_parameter = next(
            (parameter for parameter in parameters if _needs_answer(invocation, parameter, chosen, prompted, known)),
            None,
        )
        if open_parameter is None:
            break
        name = open_parameter.name
        before = known.previous.get(name) or offered.get(name) or open_parameter.default_value
        chosen[name] = prompt(open_parameter, before)
        prompted.add(name)
    _check_flag_values(invocation, {name: chosen[name] for name in flag_values}, seen, known)
    if known.is_checked:
        _check_result(parameters, chosen, known)
    copied = {name: value for name, value in known.copied.items() if name in seen and not seen[name].ephemeral}
    return [{"name": name, "value": str(value)} for name, value in {**copied, **chosen}.items()]


def _bool_words(parameters: list[FormParameter], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the values for bool parameters that a file gives in other words than the API's."""
    given = {item.name: chosen.get(item.name) for item in parameters if item.type == "bool"}
    words = {name: bool_text(value) for name, value in given.items() if isinstance(value, FileValue)}
    return {name: word for name, word in words.items() if word != chosen[name]}


def _needs_answer(
    invocation: Invocation[ParameterOptions],
    parameter: FormParameter,
    chosen: Mapping[str, str],
    prompted: set[str],
    known: KnownValues,
) -> bool:
    name = parameter.name
    if name in known.preset:
        return False
    if name in chosen:
        return name in prompted and bool(parameter.problems)  # the last answer is invalid: prompt again
    prompts_all = bool(invocation.options.always_prompt) and parameter.mutable and not parameter.ephemeral
    if parameter.ephemeral:
        return bool(invocation.options.prompt_ephemeral or invocation.options.build_options)
    if name in known.previous or name in known.copied:
        return prompts_all or (known.action == UPDATE and _is_missing_option(parameter))
    if parameter.required:
        return True
    if _uses_default(invocation, name):
        return False
    return known.action == CREATE or prompts_all or (known.action == UPDATE and not parameter.mutable)


def _is_missing_option(parameter: FormParameter) -> bool:
    """Return whether the last build's value is not an option of the new version."""
    return bool(parameter.options) and parameter.type != "list(string)" and bool(parameter.problems)


def _uses_default(invocation: Invocation[ParameterOptions], name: str) -> bool:
    """Return whether to use a parameter's default without a prompt."""
    offered = pairs(invocation.options.parameter_default, "parameter-default")
    return bool(invocation.options.use_defaults or (invocation.options.yes and name not in offered))


def _reject_near_misses(flag_values: Mapping[str, str], seen: Mapping[str, FormParameter]) -> None:
    """Raise CoderError for names that nearly match a parameter; others can become valid after a later answer."""
    for name in flag_values:
        if name not in seen and get_close_matches(name, list(seen), cutoff=0.8):
            raise _unknown_parameter(name, list(seen))


def _check_flag_values(
    invocation: Invocation[ParameterOptions],
    flag_values: Mapping[str, str],
    seen: Mapping[str, FormParameter],
    known: KnownValues,
) -> None:
    ephemeral_given = {
        **pairs(invocation.options.ephemeral_parameter, "ephemeral-parameter"),
        **pairs(invocation.options.build_option, "build-option"),
    }
    for name, value in flag_values.items():
        parameter = seen.get(name)
        if parameter is None:
            raise _unknown_parameter(name, list(seen))
        if parameter.ephemeral and name not in ephemeral_given and not invocation.options.prompt_ephemeral:
            message = f'ephemeral parameter "{name}" can be used only with --prompt-ephemeral-parameters or '
            raise CoderError("parameter", f"{message}--ephemeral-parameter flag")
        if not parameter.mutable and known.action != CREATE and known.previous.get(name, value) != value:
            raise CoderError("parameter", f'parameter "{name}" is immutable and cannot be updated')


def _check_result(parameters: list[FormParameter], chosen: Mapping[str, str], known: KnownValues) -> None:
    """Raise CoderError if the server will reject the values of a start."""
    problems = []
    for parameter in parameters:
        if parameter.ephemeral and parameter.name not in chosen:
            continue  # the last build's value does not count
        problem = next(iter(parameter.problems), "") or _monotonic_problem(parameter, known.previous)
        if problem:
            problems.append(f"{parameter.name}: {problem}")
    if problems:
        raise CoderError("parameter", f"Unable to validate parameters: {'; '.join(problems)}")


def _monotonic_problem(parameter: FormParameter, previous: Mapping[str, str]) -> str:
    before = previous.get(parameter.name)
    if parameter.value is None or before is None:
        return ""
    return monotonic_problem(parameter.monotonic, parameter.value, before)


def _unknown_parameter(name: str, known: list[str]) -> CoderError:
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(sorted(known)) or 'none'}"
    return CoderError("parameter", f'parameter "{name}" is not present in the template', hint)


# ---- prompts


def prompt(parameter: FormParameter, default: str) -> str:
    """Print a parameter with its description and options, and return the answer in the API's form."""
    stdout = sys.stdout
    stdout.write(f"\n{parameter.title}\n")
    for line in parameter.description.splitlines():
        stdout.write(f"  {line}\n")
    for problem in parameter.problems if parameter.value is not None else ():
        stdout.write(f"  ! {problem}\n")
    choices = [Choice(option.value, option.name, option.description) for option in parameter.options]
    if parameter.type == "list(string)":
        return _prompt_list(choices, default)
    if parameter.type == "bool" and not choices:
        if not is_interactive():
            return _bool_answer(ask("Enter true or false:", default=default))
        choices = [Choice("true", "Yes"), Choice("false", "No")]
    return select("Enter a value:", choices, default=default) if choices else ask("Enter a value:", default=default)


def _prompt_list(choices: list[Choice], default: str) -> str:
    if choices and is_interactive():
        return json.dumps(select_many("Choose values:", choices, defaults=_list_of(default)))
    print_choices(choices, [default])
    return _list_answer(ask("Enter values, separated by commas:", default=default), choices)


def _list_of(value: str) -> list[str]:
    """Return the items of a JSON list; none for other values."""
    try:
        items = json.loads(value)
    except ValueError:
        return []
    return [str(item) for item in items] if isinstance(items, list) else []


def _bool_answer(answer: str) -> str:
    return {"y": "true", "yes": "true", "n": "false", "no": "false"}.get(answer.lower(), answer.lower())


def _list_answer(answer: str, choices: list[Choice]) -> str:
    if answer.lstrip().startswith("["):
        return answer
    return json.dumps([resolve_choice(part.strip(), choices) for part in answer.split(",") if part.strip()])
